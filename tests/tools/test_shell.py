"""A shell leaves no process behind, in whatever way it ends."""

import asyncio
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.secrets.registry import NO_LENT_SECRETS
from perdure.tools.shell.session import ShellSession
from perdure.tools.shell.shell import ShellExit
from perdure.tools.tool import ToolFailed
from tests.tools.processes import find_processes, list_descriptors, wait_until
from tests.tools.talking import Terminal, cancel, talk, text_of_result

__all__ = ["talk"]

# Each of these leaves `sleep` behind, under the name of the token, in another way.
WAYS_TO_STAY = {
    "in the foreground": "(exec -a {token} sleep 600)",
    "in the background": "(exec -a {token} sleep 600) & sleep 600",
    "in a session of its own": "setsid bash -c 'exec -a {token} sleep 600' & sleep 600",
    "as a daemon": "(setsid bash -c '(exec -a {token} sleep 600) & disown' &); sleep 600",
    "without an environment": "env -i setsid bash -c 'exec -a {token} sleep 600' & sleep 600",
    "deaf to signals": "trap '' TERM INT HUP; (exec -a {token} sleep 600)",
    "stopped": "(exec -a {token} sleep 600) & "
    "until grep -q sleep /proc/$!/comm; do :; done; kill -STOP $!; sleep 600",
    "without our terminal": "setsid bash -c 'exec -a {token} sleep 600' <&- >&- 2>&- & sleep 600",
    "in great number": "for i in $(seq 100); do (exec -a {token} sleep 600) & done; sleep 600",
}


def command(way: str, token: str) -> str:
    return WAYS_TO_STAY[way].format(token=f"ps-{token}")


def sleepers(token: str) -> list[int]:
    return [pid for pid in find_processes(f"ps-{token}") if _name(pid) == "sleep"]


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


@pytest.mark.parametrize("way", WAYS_TO_STAY)
async def test_cancelling_ends_every_process_of_the_command(
    talk: Terminal, token: str, way: str
) -> None:
    task = talk.start(command(way, token))
    await wait_until(lambda: sleepers(token))
    await cancel(task)
    assert not find_processes(token)


@pytest.mark.parametrize("way", WAYS_TO_STAY)
async def test_a_reset_ends_every_process_of_the_shell(
    talk: Terminal, token: str, way: str
) -> None:
    await talk.run(command(way, token), timeout=0.1)
    await wait_until(lambda: sleepers(token))
    await talk.run("", reset=True)
    assert not find_processes(token)


async def test_processes_get_a_grace_period_after_the_shell_ends(talk: Terminal) -> None:
    ended = await talk.run("(sleep 0.1; echo later) & exit")
    assert text_of_result(ended).startswith("later\n[Command finished with exit code 0]")


async def test_all_that_was_printed_before_an_exit_arrives(talk: Terminal) -> None:
    ended = await talk.run("seq 200000; exit")
    whole = await talk.place.stored(ended.full_output_save_dir)
    assert whole == b"".join(b"%d\n" % n for n in range(1, 200_001))


async def test_killing_the_supervisor_does_not_free_anybody(talk: Terminal, token: str) -> None:
    stays = f"setsid bash -c 'exec -a ps-{token} sleep 600' & (exec -a ps-{token} sleep 600) &"
    observation = await talk.run(f"{stays} kill -9 $PPID; sleep 600")
    assert not find_processes(token)
    assert observation.exit_code == 128 + 9


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP"])
async def test_a_signal_to_the_supervisor_ends_the_shell(
    talk: Terminal, token: str, name: str
) -> None:
    observation = await talk.run(f"kill -{name} $PPID; (exec -a ps-{token} sleep 600)")
    assert not find_processes(token)
    # Which of the two is told depends on whose end is seen first: the supervisor's or the shell's.
    assert observation.exit_code in (-1, 128 + 9)
    assert not observation.timeout


WORKER = """
import asyncio, os, sys
from pathlib import Path
from perdure.secrets.registry import NO_LENT_SECRETS
from perdure.tools.shell.session import ShellSession

async def work():
    masker = NO_LENT_SECRETS.masker()
    session = ShellSession(Path(sys.argv[2]), {"PATH": os.environ["PATH"]}, masker)
    call = session.start(sys.argv[1])
    await call.wait(600)

asyncio.run(work())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_a_worker_that_dies_takes_its_shells_along(
    talk: Terminal, token: str, number: int
) -> None:
    line = command("as a daemon", token)
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, line, talk.place.workspace], stderr=subprocess.DEVNULL
    )
    await wait_until(lambda: sleepers(token))
    worker.send_signal(number)
    await asyncio.to_thread(worker.wait)
    await wait_until(lambda: not find_processes(token))


async def test_a_shell_that_cannot_be_started_says_why(workspace: Path) -> None:
    (workspace / "libc.so.6").touch()
    session = ShellSession(workspace, {"LD_LIBRARY_PATH": str(workspace)}, NO_LENT_SECRETS.masker())
    call = session.start("true")
    with pytest.raises(ToolFailed, match=r"The shell could not be started: .*file too short"):
        await call.wait(30)
    await session.close()


async def test_noise_of_the_loader_is_no_failure(workspace: Path) -> None:
    session = ShellSession(
        workspace, {"LD_PRELOAD": "/there/is/no/such.so"}, NO_LENT_SECRETS.masker()
    )
    finished = await session.start("exit 7").wait(30)
    assert finished is not None
    assert finished.shell_exit == ShellExit(7)
    await session.close()


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file of ours can grow beyond two megabytes, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("small_files")
async def test_output_that_cannot_be_kept_ends_the_shell(talk: Terminal, token: str) -> None:
    with pytest.raises(OSError, match="File too large"):
        await talk.run(f"yes | head -c 4000000; (exec -a {token} sleep 600)")
    assert text_of_result(await talk.run("echo again")).startswith("[A new shell was started")
    assert not find_processes(token)


async def test_nothing_is_left_open(talk: Terminal) -> None:
    await talk.run("true")
    await talk.sessions.close()
    before = list_descriptors()
    for _ in range(3):
        await talk.run("seq 20000", reset=True)
        await talk.run("sleep 600", timeout=0.05)
        await talk.run("exit", reset=True)
    await talk.sessions.close()
    assert not list_descriptors() - before
