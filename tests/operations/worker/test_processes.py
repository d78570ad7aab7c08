"""Worker processes side by side."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from perdure.embedded.ports import choose_ports
from perdure.embedded.process import request_status
from perdure.embedded.worker_command import worker_command
from perdure.operations.worker.options import WorkerOptions
from perdure.operations.worker.processes import count_cores, run_processes

WAITING = """
import os, pathlib, sys, time
pathlib.Path(sys.argv[1], str(os.getpid())).touch()
time.sleep(60)
"""

MISCONFIGURED = "raise SystemExit(2)"

PROBED = """
import http.server, os, pathlib, socket, sys
pathlib.Path(sys.argv[1], str(os.getpid())).touch()

class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if pathlib.Path(sys.argv[1], "..", "ready").exists() else 503)
        self.end_headers()

server = http.server.HTTPServer(("", 0), Answer, bind_and_activate=False)
server.socket = socket.socket(fileno=int(sys.argv[sys.argv.index("--health-fd") + 1]))
server.serve_forever()
"""
"""A process that answers probes at the socket that it was given."""


def waiting_command(folder: Path) -> list[str]:
    return [sys.executable, "-c", WAITING, str(folder)]


async def wait_for_processes(folder: Path, count: int) -> list[int]:
    """Wait until that many processes have named themselves in the folder."""
    async with asyncio.timeout(20):
        while len(files := list(folder.iterdir())) < count:
            await asyncio.sleep(0.02)
    return [int(file.name) for file in files]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_process_that_is_killed_is_started_again_and_sigterm_ends_all(
    tmp_path: Path,
) -> None:
    running = asyncio.create_task(run_processes(2, waiting_command(tmp_path)))
    first, second = await wait_for_processes(tmp_path, 2)
    os.kill(first, signal.SIGKILL)
    pids = await wait_for_processes(tmp_path, 3)
    assert is_running(second)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await asyncio.wait_for(running, 20) == 0
    assert not any(map(is_running, pids))


async def test_a_wrong_configuration_ends_all_with_its_exit_code(tmp_path: Path) -> None:
    script = f"import os, sys\nif os.listdir(sys.argv[1]): {MISCONFIGURED}\n{WAITING}"
    command = [sys.executable, "-c", script, str(tmp_path)]
    running = asyncio.create_task(run_processes(1, command))
    [first] = await wait_for_processes(tmp_path, 1)
    os.kill(first, signal.SIGKILL)  # the next one finds the file of the first
    assert await asyncio.wait_for(running, 20) == 2


@pytest.mark.long
async def test_the_probes_of_several_processes_answer_for_all_of_them(tmp_path: Path) -> None:
    [port] = choose_ports(tmp_path / "ports.json", ["health"]).values()
    (folder := tmp_path / "pids").mkdir()
    command = [sys.executable, "-c", PROBED, str(folder)]
    options = WorkerOptions(health_port=port)
    running = asyncio.create_task(run_processes(2, command, options))
    first, _ = await wait_for_processes(folder, 2)
    async with asyncio.timeout(20):
        await wait_for_status(port, "/readyz", 503)
        (tmp_path / "ready").touch()
        await wait_for_status(port, "/readyz", 200)
        assert await request_status("GET", port, "/livez") == 200
        os.kill(first, signal.SIGSTOP)
        assert await request_status("GET", port, "/livez") in (503, None)
        os.kill(first, signal.SIGKILL)
        await wait_for_status(port, "/readyz", 200)  # it was started again
    os.kill(os.getpid(), signal.SIGTERM)
    assert await asyncio.wait_for(running, 20) == 0


async def wait_for_status(port: int, path: str, status: int) -> None:
    while await request_status("GET", port, path) != status:
        await asyncio.sleep(0.05)


def test_one_process_needs_no_supervisor() -> None:
    assert worker_command(1)[-1] == "perdure.worker"
    assert worker_command(0)[-2:] == ("perdure.operations.worker.processes", "0")
    assert worker_command(2, ["--grace", "9"])[-3:] == ("2", "--grace", "9")
    assert count_cores() >= 1
