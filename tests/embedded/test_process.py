import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from perdure.embedded.errors import ProcessFailed
from perdure.embedded.process import (
    LOWER_PRIORITY,
    NICENESS,
    ChildProcess,
    ProcessRecord,
    _start_time_from_ps,
    build_child_command,
    end_predecessor,
    find_program,
)
from perdure.errors import MissingExtra
from tests.embedded.processes import (
    SLEEP_COMMAND,
    is_alive,
    may_set_session_niceness,
    read_niceness,
    wait_until,
)

# 4 is PR_SET_DUMPABLE, which becomes 0 with another user: files of /proc/self are root's then.
BECOME_NOBODY = """
import ctypes, os, time
os.setuid(65534)
ctypes.CDLL(None).prctl(4, 1)
"""

IGNORES_SIGTERM = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
"""


async def never() -> bool:
    return False


async def test_a_program_that_fails_at_its_start_is_reported_with_its_log(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", "print('the disk is full'); raise SystemExit(3)"]
    child = await ChildProcess.start("store", command, tmp_path / "store.log")
    with pytest.raises(ProcessFailed, match=r"(?s)store ended .*code 3.*the disk is full"):
        await child.wait_until(never)


async def test_a_program_that_is_never_ready_is_ended_and_reported(tmp_path: Path) -> None:
    child = await ChildProcess.start("store", SLEEP_COMMAND, tmp_path / "store.log")
    with pytest.raises(ProcessFailed, match=r"store was not ready within 0\.2 s"):
        await child.wait_until(never, max_wait=0.2)
    assert not is_alive(child.pid)


async def test_a_program_whose_start_is_cancelled_is_ended(tmp_path: Path) -> None:
    child = await ChildProcess.start("store", SLEEP_COMMAND, tmp_path / "store.log")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await child.wait_until(never)
    assert not is_alive(child.pid)


async def test_a_missing_program_is_named_in_the_error(tmp_path: Path) -> None:
    missing = str(tmp_path / "weed")
    with pytest.raises(ProcessFailed, match=f"store cannot be run: {missing} is not a program"):
        await ChildProcess.start("store", [missing], tmp_path / "store.log")


def test_a_program_of_an_extra_that_is_not_installed_says_what_to_install() -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'perdure\[dev\]'"):
        find_program("no-such-program")


async def test_a_program_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "stubborn.log"
    child = await ChildProcess.start("stubborn", [sys.executable, "-c", IGNORES_SIGTERM], log)
    await wait_until(lambda: "ready" in log.read_text())
    await child.stop(grace=0.1)
    assert await child.wait() == -signal.SIGKILL
    assert not is_alive(child.pid)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of a parent's death")
async def test_a_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.embedded.start_a_child", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_alive(child)
        parent.kill()
    await wait_until(lambda: not is_alive(child))


async def test_a_child_has_a_low_priority_if_asked_for(tmp_path: Path) -> None:
    own, _ = read_niceness(os.getpid())
    low = await ChildProcess.start("low", SLEEP_COMMAND, tmp_path / "low.log", low_priority=True)
    other = await ChildProcess.start("other", SLEEP_COMMAND, tmp_path / "other.log")
    lower = min(own + NICENESS, 19)
    await wait_until(lambda: read_niceness(low.pid)[0] == lower)
    # The session of this process may be one that Linux had before autogroups: others count.
    nice, session = read_niceness(other.pid)
    assert nice == own
    if session is not None and may_set_session_niceness():
        await wait_until(lambda: read_niceness(low.pid) == (lower, NICENESS))
    assert read_niceness(other.pid) == (own, session)
    program = Path(f"/proc/{low.pid}/cmdline")
    await wait_until(lambda: not program.exists() or b"-ISc" not in program.read_bytes())
    for child in (low, other):
        await child.stop()
        assert await child.wait() == -signal.SIGTERM


async def test_a_child_of_low_priority_may_be_started_from_another_thread(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import os; print(os.getpriority(os.PRIO_PROCESS, 0))"]
    lowered = await asyncio.to_thread(build_child_command, command, low_priority=True)
    output = subprocess.run(lowered, cwd=tmp_path, capture_output=True, check=True).stdout
    assert int(output) == min(read_niceness(os.getpid())[0] + NICENESS, 19)


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT CHECKED: only root can become another user")
async def test_the_priority_of_many_children_of_another_user_is_low() -> None:
    """Linux refuses them a second value within 0.1 s, so it is asked again."""
    if not may_set_session_niceness(BECOME_NOBODY):
        pytest.skip("NOT CHECKED: nobody may set the nice value of a session on this machine")
    program = f"{BECOME_NOBODY}{LOWER_PRIORITY}time.sleep(600)"
    command = [sys.executable, "-ISc", program]
    children = [subprocess.Popen(command, start_new_session=True) for _ in range(4)]
    try:
        await wait_until(lambda: all(read_niceness(each.pid)[1] == NICENESS for each in children))
    finally:
        for child in children:
            child.kill()
            child.wait()


async def test_a_process_left_by_an_earlier_start_is_ended_first(tmp_path: Path) -> None:
    log = tmp_path / "sleeper.log"
    first = await ChildProcess.start("sleeper", SLEEP_COMMAND, log)
    second = await ChildProcess.start("sleeper", SLEEP_COMMAND, log)
    assert await first.wait() == -signal.SIGTERM
    assert is_alive(second.pid)
    await second.stop()


async def test_a_later_process_with_the_same_pid_is_left_alone(tmp_path: Path) -> None:
    pidfile = tmp_path / "noted.pid"
    stranger = await ChildProcess.start("stranger", SLEEP_COMMAND, tmp_path / "stranger.log")
    pidfile.write_text(ProcessRecord(pid=stranger.pid, started="long ago").model_dump_json())
    await end_predecessor(pidfile)
    assert is_alive(stranger.pid)
    await stranger.stop()


@pytest.mark.skipif(shutil.which("ps") is None, reason="this machine has no ps")
async def test_ps_gives_the_start_time_of_a_process_without_proc(
    tmp_path: Path,
) -> None:
    child = await ChildProcess.start("sleeper", SLEEP_COMMAND, tmp_path / "sleeper.log")
    started = _start_time_from_ps(child.pid)
    assert started is not None
    assert started == _start_time_from_ps(child.pid)
    await child.stop()
    assert _start_time_from_ps(child.pid) is None
