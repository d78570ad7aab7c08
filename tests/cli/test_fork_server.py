"""Commands in forks do as those with an interpreter of their own."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.cli.command import Perdure, clean_environment
from tests.cli.fork_server import SPAWN, ForkedCommand, may_fork


@pytest.fixture
def perdure(tmp_path: Path) -> Perdure:
    where = {"PERDURE_STORE": (tmp_path / "store").as_uri(), "PERDURE_DATA": str(tmp_path)}
    return Perdure({**clean_environment(), **where, "TEMPORAL_ADDRESS": "127.0.0.1:9"})


@pytest.mark.long
@pytest.mark.parametrize(
    "words",
    [
        ("ls",),
        ("lss",),
        ("show", "ffffffff", "-o", "json"),
        ("send", "ffffffff", "-"),
        ("--version",),
        ("agent", "check", "nothing"),
    ],
)
async def test_a_fork_does_as_a_process_of_its_own(
    perdure: Perdure, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert may_fork(perdure.env, "")
    spawned = perdure.with_env(**{SPAWN: "1"})
    assert not may_fork(spawned.env, "")
    assert await perdure(*words, stdin="Hello.\n") == await spawned(*words, stdin="Hello.\n")


async def test_forks_have_the_folder_and_the_environment_of_their_caller(
    perdure: Perdure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("perdure.toml").write_text("store = 5\n")
    wrong = await perdure.without_env("PERDURE_STORE")("ls")
    assert (wrong.code, "The setting 'store'" in wrong.err) == (2, True)
    Path("perdure.toml").unlink()
    assert (await perdure("ls")).code == 0


@pytest.mark.parametrize("name", ["PYTHONUTF8", "COLUMNS", "FORCE_COLOR"])
def test_what_counts_at_the_start_of_an_interpreter_needs_one(perdure: Perdure, name: str) -> None:
    assert not may_fork({**perdure.env, name: "77"}, "")
    assert not may_fork(perdure.env, "x" * 100_000)


async def test_a_command_that_nobody_waits_for_any_more_is_killed(perdure: Perdure) -> None:
    command = ForkedCommand()
    running = asyncio.create_task(command.run(("worker",), perdure.env, b""))
    while (pid := command.pid) is None:
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    async with asyncio.timeout(30):
        while is_alive(pid):
            await asyncio.sleep(0.05)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
