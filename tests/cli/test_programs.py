"""Programs of users, run as processes: scripts that ask, wait and end by themselves.

The same programs run over a gateway: its address and a key are all that they need.
"""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.cli.command import Perdure, clean_environment

ROOT = Path(__file__).parents[2]

PROGRAMS = int(os.environ.get("PERDURE_TEST_PROGRAMS", "20"))
"""The number of programs that must end; `PERDURE_TEST_PROGRAMS=100` runs more of them."""

AT_A_TIME = 4
MAX_SECONDS = 60

ENDS_BUSY = """
import asyncio
from perdure import Agent, Client

async def main():
    client = await Client.connect()
    conversation = await client.start("Hi.", Agent(model=MODEL, tools=[], idle_timeout=60))
    print((await conversation.result()).text)
    waiting = [asyncio.ensure_future(conversation.handle.result()) for _ in range(8)]
    await asyncio.sleep(0.05)

asyncio.run(main())
"""
"""A program whose last calls are under way when it ends, as calls are that somebody gave up."""

FOLLOWS = """
import perdure
from perdure import Agent, MessageEvent

with perdure.SyncClient() as client:
    first = client.start("Hi.", Agent(model=MODEL, tools=[]))
    print([event.source for event in first.turn() if isinstance(event, MessageEvent)])
    print(first.result().text)
    first.send("And now?")
    print(client.conversation(first.id).result().text)
    client.conversation(first.id).send("And then?")
    print(first.result().text)
    print("".join(first.text()).strip())
"""

IN_A_LOOP = """
import asyncio, perdure

async def cell():
    return perdure.run("Hi.", model=MODEL, tools=[])

print(asyncio.run(cell()).text)
"""

INTERRUPTED = """
import perdure
perdure.run("QUESTION", model=MODEL, tools=[])
"""

INTERRUPTED_AT_THE_START = """
import os, signal, time
import anyio.from_thread
import perdure

run = anyio.from_thread.run_eventloop

def run_late(*arguments, **options):
    time.sleep(0.2)  # until the client waits for its thread
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.2)
    run(*arguments, **options)

anyio.from_thread.run_eventloop = run_late
perdure.SyncHttpClient("http://127.0.0.1:9", "pk_none")
"""

NEVER_CLOSES = """
import perdure
from perdure import Agent

client = perdure.SyncClient()
turn = client.start("Hi.", Agent(model=MODEL, tools=[])).turn()
print(next(turn).source)
"""

READS_MESSAGES = """
import json, perdure
from perdure.client.sync import wait_for
from perdure.storage.keys import LLM_MESSAGES, conversation_prefix

perdure.run("Hi.", model=MODEL, tools=[])
with perdure.SyncClient() as client:
    [name] = client.list_conversations()
    key = conversation_prefix("asks-once", name) + LLM_MESSAGES
    messages = json.loads(wait_for(client.portal, lambda: client.wrapped.store.read(key)))
print([message["content"] for message in messages["messages"][1:]])
"""

BOTH_WAYS = """
import asyncio
from perdure import Agent, Client

async def main():
    async with Client.connect() as client:
        conversation = await client.start("Hi.", Agent(model=MODEL, tools=[]))
    client = await Client.connect()
    print((await client.conversation(conversation.id).result()).text)
    await client.close()
    print(len(asyncio.all_tasks()))

asyncio.run(main())
"""


@pytest.fixture(params=["perdure", "behind_gateway"])
def either(request: pytest.FixtureRequest) -> Perdure:
    """The environment of the servers, or that of a gateway alone."""
    environment: Perdure = request.getfixturevalue(request.param)
    return environment


async def run_program(
    code: str, env: Mapping[str, str], model: str, folder: Path
) -> tuple[int | None, str, str]:
    """Return the exit code and the output of a program; None for one that did not end."""
    code = code.replace("MODEL", repr(f"scripted:{model}"))
    program = await start_program(code, env, folder)
    try:
        out, err = await asyncio.wait_for(program.communicate(), MAX_SECONDS)
    except TimeoutError:
        program.kill()
        await program.wait()
        return None, "", ""
    return program.returncode, out.decode(), err.decode()


async def start_program(
    code: str, env: Mapping[str, str], folder: Path
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code),
        cwd=folder,
        env={**env, "PYTHONPATH": str(ROOT)},
        stdout=PIPE,
        stderr=PIPE,
    )


@pytest.mark.long
@pytest.mark.timeout(30 * PROGRAMS)
async def test_every_program_ends_by_itself(
    perdure: Perdure, script: Callable[..., str], tmp_path: Path
) -> None:
    model, places = script({"content": "Hello."}), asyncio.Semaphore(AT_A_TIME)

    async def run() -> tuple[int | None, str, str]:
        async with places:
            return await run_program(ENDS_BUSY, perdure.env, model, tmp_path)

    ends = await asyncio.gather(*(run() for _ in range(PROGRAMS)))
    assert set(ends) == {(0, "Hello.\n", "")}


@pytest.mark.long
async def test_a_program_whose_last_calls_are_under_way_ends(
    perdure: Perdure, script: Callable[..., str], tmp_path: Path
) -> None:
    model = script({"content": "Hello."})
    assert await run_program(ENDS_BUSY, perdure.env, model, tmp_path) == (0, "Hello.\n", "")


@pytest.mark.long
async def test_a_client_is_awaited_or_entered(
    either: Perdure, script: Callable[..., str], tmp_path: Path
) -> None:
    end = await run_program(BOTH_WAYS, either.env, script({"content": "Hello."}), tmp_path)
    assert end == (0, "Hello.\n1\n", "")


@pytest.mark.long
async def test_a_script_follows_the_newest_turn_whoever_sent_its_message(
    either: Perdure, script: Callable[..., str], tmp_path: Path
) -> None:
    model = script({"content": "One."}, {"content": "Two."}, {"content": "Three."})
    code, out, err = await run_program(FOLLOWS, either.env, model, tmp_path)
    assert (code, out.splitlines()) == (
        0,
        ["['user', 'agent']", "One.", "Two.", "Three.", "Two.", "Three."],
    ), err


@pytest.mark.long
async def test_one_question_is_answered_within_a_running_loop(
    either: Perdure, script: Callable[..., str], tmp_path: Path
) -> None:
    end = await run_program(IN_A_LOOP, either.env, script({"content": "Hello."}), tmp_path)
    assert end == (0, "Hello.\n", "")


@pytest.mark.long
async def test_a_script_that_closes_nothing_ends(
    either: Perdure, script: Callable[..., str], tmp_path: Path
) -> None:
    end = await run_program(NEVER_CLOSES, either.env, script({"content": "Hello."}), tmp_path)
    assert end == (0, "environment\n", "")


@pytest.mark.long
async def test_an_interrupt_while_a_client_starts_its_thread_ends_the_script(
    tmp_path: Path,
) -> None:
    program = await start_program(INTERRUPTED_AT_THE_START, clean_environment(), tmp_path)
    _, err = await asyncio.wait_for(program.communicate(), MAX_SECONDS)
    assert program.returncode == -signal.SIGINT, err.decode()


@pytest.mark.long
async def test_a_script_that_waits_ends_at_an_interrupt(
    either: Perdure, script: Callable[..., str], tmp_path: Path
) -> None:
    model = script({"content": "one two three", "chunk_delay": 60})
    question = f"Wait for me, {tmp_path.name}."
    code = INTERRUPTED.replace("MODEL", repr(f"scripted:{model}")).replace("QUESTION", question)
    program = await start_program(code, either.env, tmp_path)
    async with asyncio.timeout(MAX_SECONDS):
        # Not before: interrupted while it is imported, pydantic raises an error of its own.
        while question not in (await either("ls", "-o", "json")).out:
            await asyncio.sleep(0.2)
    program.send_signal(signal.SIGINT)
    _, err = await asyncio.wait_for(program.communicate(), MAX_SECONDS)
    assert program.returncode == -signal.SIGINT, err.decode()
    assert err.decode().splitlines()[-1] == "KeyboardInterrupt"


@pytest.mark.long
async def test_one_question_starts_a_stack_where_none_runs(
    perdure: Perdure, tmp_path: Path, script: Callable[..., str]
) -> None:
    env = perdure.without_env("PERDURE_STORE", "TEMPORAL_ADDRESS", "PERDURE_TASK_QUEUE").env
    env = {**env, "PERDURE_DATA": str(tmp_path / "data")}
    twice = IN_A_LOOP + "print(asyncio.run(cell()).text)"
    end = await run_program(twice, env, script({"content": "Hello."}), tmp_path)
    assert end == (0, "Hello.\nHello.\n", "")
    assert not (tmp_path / "data" / "stack.json").exists()


@pytest.mark.long
async def test_one_question_has_left_its_messages_when_it_is_answered(
    perdure: Perdure, tmp_path: Path, script: Callable[..., str]
) -> None:
    env = perdure.with_env(PERDURE_USER="asks-once").env
    end = await run_program(READS_MESSAGES, env, script({"content": "Hello."}), tmp_path)
    assert end == (0, "['Hi.', 'Hello.']\n", "")


@pytest.mark.long
async def test_a_program_without_servers_is_refused_with_what_to_do(
    perdure: Perdure, tmp_path: Path
) -> None:
    env = perdure.without_env("PERDURE_STORE", "TEMPORAL_ADDRESS").env
    env = {**env, "PERDURE_DATA": str(tmp_path / "none")}
    code = "import perdure\nperdure.SyncClient()"
    ended, _, err = await run_program(code, env, "", tmp_path)
    assert ended == 1
    assert f"No store is set, and no stack runs in {tmp_path / 'none'}." in err
    assert "Start one with `perdure dev`" in err


@pytest.mark.long
async def test_the_example_runs_over_either(
    either: Perdure, script: Callable[..., str], tmp_path: Path
) -> None:
    code = "import asyncio\nfrom examples.hello import main\nasyncio.run(main('2 + 3?', MODEL))"
    ended, out, err = await run_program(code, either.env, script({"content": "It is 5."}), tmp_path)
    assert (ended, out.splitlines()[-2:]) == (0, ["agent MessageEvent", "It is 5."]), err
