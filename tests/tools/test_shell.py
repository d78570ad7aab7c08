"""Nothing of a command is left once it is over, however it ends and whatever it did."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from events.actions import TerminalAction
from events.content import text_of
from events.observations import TerminalObservation
from tests.tools.conftest import Place
from tests.tools.processes import alive, until
from tools.shell import execute
from tools.terminal import TERMINAL
from tools.tool import ToolFailed

# Each of these leaves `sleep` behind, under the name of the token, in another way.
WAYS_TO_STAY = {
    "in the foreground": "(exec -a {token} sleep 600)",
    "in the background": "(exec -a {token} sleep 600) & wait",
    "in a session of its own": "setsid bash -c 'exec -a {token} sleep 600' & wait",
    "as a daemon": "(setsid bash -c '(exec -a {token} sleep 600) & disown' &); sleep 600",
    "without an environment": "env -i setsid bash -c 'exec -a {token} sleep 600' & wait",
    "deaf to signals": "trap '' TERM INT HUP; (exec -a {token} sleep 600)",
    "stopped": "(exec -a {token} sleep 600) & "
    "until grep -q sleep /proc/$!/comm; do :; done; kill -STOP $!; wait",
    "without our pipes": "setsid bash -c 'exec -a {token} sleep 600' <&- >&- 2>&- & wait",
    "in great number": "for i in $(seq 100); do (exec -a {token} sleep 600) & done; wait",
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


async def run(place: Place, command: str, timeout: float | None = 60) -> TerminalObservation:
    observation = await TERMINAL.run(
        TerminalAction(command=command, timeout=timeout), place.context
    )
    assert isinstance(observation, TerminalObservation)
    return observation


@pytest.mark.parametrize("way", WAYS_TO_STAY)
async def test_cancelling_ends_every_process(place: Place, token: str, way: str) -> None:
    task = asyncio.create_task(run(place, command(way, token)))
    await until(lambda: sleepers(token))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(token)


@pytest.mark.parametrize("way", WAYS_TO_STAY)
async def test_a_timeout_ends_every_process(place: Place, token: str, way: str) -> None:
    observation = await run(place, command(way, token), timeout=0.5)
    assert not alive(token)
    assert observation.timeout
    assert observation.is_error
    assert (observation.exit_code, observation.metadata.exit_code) == (-1, -1)
    assert text_of(observation.content).endswith(
        "[Command was ended with all its processes after 0.5 seconds, before it was done. Give a "
        "larger `timeout` if it needs longer.]"
    )


async def test_what_was_said_before_a_timeout_is_told(place: Place) -> None:
    observation = await run(place, "echo so far; sleep 600", timeout=1)
    assert text_of(observation.content).startswith("so far\n[Command was ended")


async def test_what_was_said_before_a_cancellation_is_told(place: Place, token: str) -> None:
    task = asyncio.create_task(run(place, f"echo {token}; touch said; sleep 600"))
    await until((place.workspace / "said").exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert place.progress[-1] == f"{token}\n"


async def test_cancelling_twice_leaves_nobody(place: Place, token: str) -> None:
    task = asyncio.create_task(run(place, command("in great number", token)))
    await until(lambda: sleepers(token))
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not alive(token))


async def test_cancelling_at_any_moment_of_the_start_leaves_nobody(
    place: Place, token: str
) -> None:
    for turns in range(40):
        task = asyncio.create_task(run(place, command("as a daemon", token)))
        for _ in range(turns):
            await asyncio.sleep(0.002)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not alive(token)


async def test_commands_side_by_side_do_not_end_each_other(place: Place, token: str) -> None:
    waiting = [asyncio.create_task(run(place, f"sleep 600; : {token}")) for _ in range(5)]
    until_told = "until [ -e go ]; do sleep 0.02; done; echo done"
    others = [asyncio.create_task(run(place, until_told)) for _ in range(5)]
    await until(lambda: len(alive(token)) >= 5)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    (place.workspace / "go").touch()
    for observation in await asyncio.gather(*others):
        assert text_of(observation.content).startswith("done\n")


async def test_background_processes_end_with_their_command(place: Place, token: str) -> None:
    background = f"setsid bash -c 'exec -a ps-{token} sleep 600' &"
    observation = await run(place, f"{background} {background} echo started")
    assert not alive(token)
    assert text_of(observation.content) == (
        "started\n[Ended with the command: 2 processes in the background]\n"
        "[Command finished with exit code 0]"
    )


async def test_what_finishes_a_moment_later_is_waited_for(place: Place) -> None:
    observation = await run(place, "exec > >(sleep 0.1; cat -A); echo through a pipe")
    assert text_of(observation.content) == ("through a pipe$\n[Command finished with exit code 0]")


async def test_a_command_that_closes_its_output_is_waited_for(place: Place) -> None:
    observation = await run(place, "exec >&- 2>&-; sleep 0.2; touch done; exit 4")
    assert observation.exit_code == 4
    assert (place.workspace / "done").exists()


async def test_killing_the_supervisor_does_not_free_anybody(place: Place, token: str) -> None:
    stays = f"setsid bash -c 'exec -a ps-{token} sleep 600' & (exec -a ps-{token} sleep 600) &"
    observation = await run(place, f"{stays} kill -9 $PPID; sleep 600")
    assert not alive(token)
    assert observation.exit_code == 128 + 9


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP"])
async def test_a_signal_to_the_supervisor_ends_the_command(
    place: Place, token: str, name: str
) -> None:
    observation = await run(place, f"kill -{name} $PPID; (exec -a ps-{token} sleep 600)")
    assert not alive(token)
    assert observation.exit_code == -1


WORKER = """
import asyncio, sys
from pathlib import Path
from tools.shell import execute
asyncio.run(execute(sys.argv[1], Path(sys.argv[2]), {"PATH": sys.argv[3]}, 600, lambda _: None))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_a_worker_that_dies_takes_its_commands_along(
    place: Place, token: str, number: int
) -> None:
    line = command("as a daemon", token)
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, line, place.workspace, os.environ["PATH"]],
        stderr=subprocess.DEVNULL,
    )
    await until(lambda: sleepers(token))
    worker.send_signal(number)
    await asyncio.to_thread(worker.wait)
    await until(lambda: not alive(token))


async def test_a_reader_that_fails_ends_the_command(place: Place, token: str) -> None:
    def full(_: bytes) -> None:
        raise OSError("the disk is full")

    path = {"PATH": os.environ["PATH"]}
    with pytest.raises(OSError, match="the disk is full"):
        await execute(f"echo {token}; sleep 600", place.workspace, path, 60, full)
    assert not alive(token)


async def test_a_command_that_cannot_be_started_says_why(place: Place) -> None:
    (place.workspace / "libc.so.6").touch()
    broken = {"LD_LIBRARY_PATH": str(place.workspace)}
    with pytest.raises(ToolFailed, match=r"The command could not be started: .*file too short"):
        await execute("true", place.workspace, broken, 60, lambda _: None)


async def test_noise_before_the_report_is_no_failure(place: Place) -> None:
    noisy = {"LD_PRELOAD": "/there/is/no/such.so"}
    ended = await execute("exit 7", place.workspace, noisy, 60, lambda _: None)
    assert ended.exit_code == 7


async def test_nothing_is_left_open(place: Place) -> None:
    await run(place, "true")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(10):
        await run(place, "seq 20000")
        await run(place, "sleep 600", timeout=0.05)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
