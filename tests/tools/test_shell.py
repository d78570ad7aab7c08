"""Nothing of a shell is left once it is over, however it ends and whatever was done in it."""

import asyncio
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.processes import alive, until
from tests.tools.talking import Talk, cancelled, said, talk
from tools.secrets.registry import NOTHING
from tools.shell.session import Session
from tools.shell.shell import Ended
from tools.tool import ToolFailed

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
    return [pid for pid in alive(f"ps-{token}") if _name(pid) == "sleep"]


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


@pytest.mark.parametrize("way", WAYS_TO_STAY)
async def test_cancelling_ends_every_process_of_the_command(
    talk: Talk, token: str, way: str
) -> None:
    task = talk.started(command(way, token))
    await until(lambda: sleepers(token))
    await cancelled(task)
    assert not alive(token)


@pytest.mark.parametrize("way", WAYS_TO_STAY)
async def test_a_reset_ends_every_process_of_the_shell(talk: Talk, token: str, way: str) -> None:
    await talk.say(command(way, token), timeout=0.1)
    await until(lambda: sleepers(token))
    await talk.say("", reset=True)
    assert not alive(token)


async def test_what_finishes_a_moment_after_the_shell_is_waited_for(talk: Talk) -> None:
    ended = await talk.say("(sleep 0.1; echo later) & exit")
    assert said(ended).startswith("later\n[Command finished with exit code 0]")


async def test_all_that_was_printed_before_an_exit_arrives(talk: Talk) -> None:
    ended = await talk.say("seq 200000; exit")
    whole = await talk.place.kept(ended.full_output_save_dir)
    assert whole == b"".join(b"%d\n" % n for n in range(1, 200_001))


async def test_killing_the_supervisor_does_not_free_anybody(talk: Talk, token: str) -> None:
    stays = f"setsid bash -c 'exec -a ps-{token} sleep 600' & (exec -a ps-{token} sleep 600) &"
    observation = await talk.say(f"{stays} kill -9 $PPID; sleep 600")
    assert not alive(token)
    assert observation.exit_code == 128 + 9


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP"])
async def test_a_signal_to_the_supervisor_ends_the_shell(talk: Talk, token: str, name: str) -> None:
    observation = await talk.say(f"kill -{name} $PPID; (exec -a ps-{token} sleep 600)")
    assert not alive(token)
    # Which of the two is told depends on whose end is seen first: the supervisor's or the shell's.
    assert observation.exit_code in (-1, 128 + 9)
    assert not observation.timeout


WORKER = """
import asyncio, os, sys
from pathlib import Path
from tools.secrets.registry import NOTHING
from tools.shell.session import Session

async def work():
    session = Session(Path(sys.argv[2]), {"PATH": os.environ["PATH"]}, NOTHING.masker())
    call = session.start(sys.argv[1])
    await call.finished_within(600)

asyncio.run(work())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_a_worker_that_dies_takes_its_shells_along(
    talk: Talk, token: str, number: int
) -> None:
    line = command("as a daemon", token)
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, line, talk.place.workspace], stderr=subprocess.DEVNULL
    )
    await until(lambda: sleepers(token))
    worker.send_signal(number)
    await asyncio.to_thread(worker.wait)
    await until(lambda: not alive(token))


async def test_a_shell_that_cannot_be_started_says_why(workspace: Path) -> None:
    (workspace / "libc.so.6").touch()
    session = Session(workspace, {"LD_LIBRARY_PATH": str(workspace)}, NOTHING.masker())
    call = session.start("true")
    with pytest.raises(ToolFailed, match=r"The shell could not be started: .*file too short"):
        await call.finished_within(30)
    await session.close()


async def test_noise_of_the_loader_is_no_failure(workspace: Path) -> None:
    session = Session(workspace, {"LD_PRELOAD": "/there/is/no/such.so"}, NOTHING.masker())
    finished = await session.start("exit 7").finished_within(30)
    assert finished is not None
    assert finished.shell == Ended(7)
    await session.close()


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file of ours can grow beyond two megabytes, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("small_files")
async def test_output_that_cannot_be_kept_ends_the_shell(talk: Talk, token: str) -> None:
    with pytest.raises(OSError, match="File too large"):
        await talk.say(f"yes | head -c 4000000; (exec -a {token} sleep 600)")
    assert said(await talk.say("echo again")).startswith("[A new shell was started")
    assert not alive(token)


async def test_nothing_is_left_open(talk: Talk) -> None:
    await talk.say("true")
    await talk.sessions.close()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        await talk.say("seq 20000", reset=True)
        await talk.say("sleep 600", timeout=0.05)
        await talk.say("exit", reset=True)
    await talk.sessions.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
