"""The tools that run processes work on the event loop of a worker's process."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import pytest

from perdure.operations.worker.process import find_loop_factory
from perdure.tools.grep import GREP
from perdure.tools.mcp.servers import McpSessions
from tests.tools.conftest import ToolBench
from tests.tools.mcp_calling import Caller, stdio_server
from tests.tools.processes import find_processes, wait_until
from tests.tools.searching import fill, run_tool
from tests.tools.talking import Terminal, cancel, output_of

WITHOUT_UVLOOP = """
import sys
sys.modules["uvloop"] = None  # as if it were not installed
from perdure.operations.worker.process import find_loop_factory
print(find_loop_factory())
"""


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner(loop_factory=find_loop_factory()) as runner:
        yield runner


def test_the_loop_is_uvloops(runner: asyncio.Runner) -> None:
    assert type(runner.get_loop()).__module__ == "uvloop"


@pytest.mark.long
def test_a_worker_without_uvloop_has_the_loop_of_asyncio() -> None:
    command = [sys.executable, "-c", WITHOUT_UVLOOP]
    assert subprocess.run(command, capture_output=True, check=True, text=True).stdout == "None\n"


def test_a_terminal_talks_and_leaves_no_process_behind(
    runner: asyncio.Runner, place: ToolBench, token: str
) -> None:
    async def use(terminal: Terminal) -> None:
        assert await terminal.run_ok("seq 3") == "1\n2\n3\n"
        await terminal.run_until_output("read -p 'Who? ' who; echo Hello $who", "Who? \n")
        assert "Hello Ann" in output_of(await terminal.type("Ann"))
        call = terminal.start(f"(exec -a ps-{token} sleep 600) & exec -a ps-{token} sleep 600")
        await wait_until(lambda: len(find_processes(f"ps-{token}")) > 1)
        await cancel(call)
        await terminal.sessions.close()
        assert not find_processes(token)

    runner.run(use(Terminal(place)))


def test_files_are_searched(runner: asyncio.Runner, place: ToolBench) -> None:
    fill(place.workspace, f="Word\n")
    assert runner.run(run_tool(GREP, place, pattern="Word")) == "f:1:Word"


@pytest.mark.long
def test_a_server_of_tools_is_called_and_ends(runner: asyncio.Runner, place: ToolBench) -> None:
    async def use() -> None:
        sessions = McpSessions()
        caller = Caller(sessions, place, stdio_server(trusted=True, call_timeout=30))
        assert await caller.definitions()
        await sessions.close()

    runner.run(use())
