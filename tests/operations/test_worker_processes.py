"""Worker processes side by side."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from perdure.embedded.worker_command import worker_command
from perdure.operations.worker_processes import count_cores, run_processes

WAITING = """
import os, pathlib, sys, time
pathlib.Path(sys.argv[1], str(os.getpid())).touch()
time.sleep(60)
"""

MISCONFIGURED = "raise SystemExit(2)"


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


def test_one_process_needs_no_supervisor() -> None:
    assert worker_command(1)[-1] == "perdure.worker"
    assert worker_command(0)[-2:] == ("perdure.operations.worker_processes", "0")
    assert count_cores() >= 1
