"""Tools work on the same files inside and outside of a sandbox."""

import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from perdure.sandbox.system import PYTHON
from tests.sandbox.running import set_up_sandbox
from tests.tools.conftest import ToolBench, place
from tests.tools.editing import edit_ok
from tests.tools.talking import Terminal, output_of, text_of_result

__all__ = ["place"]


@pytest_asyncio.fixture(params=["bubblewrap", "uid", "landlock"])
async def talk(request: pytest.FixtureRequest, place: ToolBench) -> AsyncIterator[Terminal]:
    """A terminal in a sandbox, without a network."""
    candidate = set_up_sandbox(request.param)
    if candidate.sandbox is None:
        pytest.skip(f"NOT CHECKED: {candidate.why}")
    with tempfile.TemporaryDirectory(prefix="sandboxed-") as made:
        Path(made).chmod(0o755)  # pytest's own folders are closed to other users
        workspace = Path(made, "workspace")
        workspace.mkdir()
        context = replace(
            place.context, workspace=workspace, sandbox=candidate.sandbox, network=False
        )
        talk = Terminal(replace(place, context=context))
        yield talk
        await talk.sessions.close()


async def test_commands_and_the_editor_change_the_same_files(talk: Terminal) -> None:
    await edit_ok(talk.place, "create", "a/new.txt", file_text="one\n")
    await talk.run_ok("echo two >> a/new.txt; echo three > a/theirs.txt; chmod 600 a/theirs.txt")
    await edit_ok(talk.place, "str_replace", "a/theirs.txt", old_str="three", new_str="four")
    await edit_ok(talk.place, "create", "a/b/c.txt", file_text="five\n")
    assert await talk.run_ok("cat a/new.txt a/theirs.txt; rm -r a") == "one\ntwo\nfour\n"
    assert list(talk.place.workspace.iterdir()) == []


async def test_a_shell_lasts_and_is_at_home(talk: Terminal) -> None:
    await talk.run("mkdir sub; cd sub; export KEPT=1")
    assert await talk.run_ok("echo $KEPT; basename $PWD; cd; touch here; ls") == "1\nsub\nhere\n"
    assert await talk.run_ok("python3 -c 'print(6 * 7)'") == "42\n"


async def test_the_terminal_can_be_opened_by_its_names(talk: Terminal) -> None:
    command = "echo a > /dev/stdout; echo b > /dev/tty; echo c | tee /dev/stderr"
    assert await talk.run_ok(command) == "a\nb\nc\nc\n"


async def test_the_network_comes_and_goes_with_what_is_allowed(talk: Terminal) -> None:
    look = "python3 -c 'import socket; print(len(socket.if_nameindex()))' 2>&1 | tail -n 1"
    without = await talk.run_ok(look)
    allowed = replace(talk.place.context, network=True)
    within = await talk.run(look, context=allowed)
    assert text_of_result(within).startswith("[A new shell was started in the workspace")
    assert output_of(within) != without or not without[0].isdigit()


async def test_a_memory_bomb_is_named(talk: Terminal) -> None:
    assert talk.place.context.sandbox.limits is not None
    size = talk.place.context.sandbox.limits.memory_bytes
    bomb = await talk.run(f"python3 -c 'bytearray({size} * 2)'")
    assert "MemoryError" in text_of_result(bomb)
    assert await talk.run_ok("echo alive") == "alive\n"


def test_the_interpreter_of_the_worker_is_not_in_a_virtual_environment() -> None:
    assert not (PYTHON.parent.parent / "pyvenv.cfg").exists()
    assert PYTHON.resolve() == PYTHON
    assert isinstance(PYTHON, Path)
