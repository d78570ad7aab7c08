"""Output on a real terminal: streamed text while it grows, and once in the end."""

import asyncio
import os
import pty
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.command import PERDURE_COMMAND, Perdure, model_options, tool_call_answer
from tests.cli.terminal import open_terminal

Script = Callable[..., str]


async def run_on_terminal(perdure: Perdure, args: Sequence[str], typed: bytes = b"") -> str:
    """Run the command on a pseudo-terminal, and return all that it writes."""
    terminal, command_side = pty.openpty()
    env = {**perdure.env, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    process = await asyncio.create_subprocess_exec(
        *PERDURE_COMMAND,
        *args,
        env=env,
        stdin=command_side,
        stdout=command_side,
        stderr=command_side,
    )
    os.close(command_side)
    os.write(terminal, typed)
    output: list[bytes] = []
    with suppress(OSError):  # how a terminal ends
        while read := await asyncio.to_thread(os.read, terminal, 65536):
            output.append(read)
    os.close(terminal)
    assert await process.wait() == 0, b"".join(output)
    return b"".join(output).decode()


def render_screen(written: str) -> str:
    """Render the output as a terminal does, without the cleared lines."""
    lines = [""]
    at = 0
    for part in re.split(r"(\x1b\[[0-9;?]*[A-Za-z]|\r|\n)", written):
        match part:
            case "\n":
                at += 1
                lines += [""] * (at + 1 - len(lines))
            case "\r" | "":
                pass
            case "\x1b[2K":
                lines[at] = ""
            case "\x1b[1A":
                at -= 1
            case _ if part.startswith("\x1b"):
                pass
            case _:
                lines[at] += part
    return "\n".join(lines)


@pytest.mark.long
async def test_streamed_text_is_shown_while_it_grows_and_then_once(
    perdure: Perdure, script: Script
) -> None:
    slow = {"content": "one two three four five", "chunk_delay": 0.5}
    path = script(
        slow | tool_call_answer("terminal", command="echo begun; sleep 2; echo over"), "Done."
    )
    written = await run_on_terminal(perdure, ["run", "Count.", *model_options(path)])
    assert re.search(r"agent +one two [^f]*\x1b\[0m", written), "it was seen to grow"
    assert re.search(r"output +begun\x1b\[0m", written)
    left = render_screen(written)
    assert left.count("one two three four five") == 1
    assert left.count("Done.") == 1
    assert "  output  " not in left


@pytest.mark.long
async def test_watch_on_a_terminal_needs_no_temporal(perdure: Perdure, script: Script) -> None:
    ran = await perdure("run", "Say it.", *model_options(script("Said.")), "-ojson")
    name = ran.json["conversation_id"]
    alone = perdure.with_env(TEMPORAL_ADDRESS="127.0.0.1:1")
    written = await run_on_terminal(alone, ["watch", name, "--until-rest"])
    assert render_screen(written).count("Said.") == 1


ANSWER = [f"word{number:03}end" for number in range(300)]


@pytest.mark.long
@pytest.mark.parametrize("columns", [80, 200])
async def test_a_whole_answer_stands_on_the_screen_without_a_broken_word(
    perdure: Perdure, script: Script, columns: int
) -> None:
    path = script(tool_call_answer("terminal", command="seq 1 100"), {"content": " ".join(ANSWER)})
    task = ("run", "Write.", *model_options(path))
    async with open_terminal(perdure, *task, columns=columns) as terminal:
        await terminal.wait_for("awaits you after 2 answers of the model")
        assert await terminal.wait_for_end() == 0
        assert re.findall(r"word\d{3}end", terminal.text) == ANSWER, "each stands there once"
        assert terminal.text.count("word") == len(ANSWER)
        assert re.search(
            r"^ +\[\.\.\. \d+ more lines; --full shows them", terminal.text, re.MULTILINE
        )
        assert max(map(len, terminal.lines)) > columns * 0.8, "the width of the screen is used"


@pytest.mark.long
@pytest.mark.parametrize("columns", [80, 200])
async def test_print_leaves_the_answer_alone_on_the_screen_wrapped_between_words(
    perdure: Perdure, script: Script, columns: int
) -> None:
    path = script({"content": f"{' '.join(ANSWER)}\n\nThe end."})
    task = ("run", "Write.", *model_options(path), "--print")
    async with open_terminal(perdure, *task, columns=columns) as terminal:
        await terminal.wait_for("The end.")
        assert await terminal.wait_for_end() == 0
        assert terminal.text.split() == [*ANSWER, "The", "end."]
        assert "\n\nThe end." in terminal.text, "empty lines stay"


@pytest.mark.long
@pytest.mark.parametrize("columns", [80, 200])
async def test_print_into_a_file_gives_it_the_answer_alone_and_the_terminal_what_must_be_done(
    perdure: Perdure, script: Script, columns: int
) -> None:
    thought = tool_call_answer("think", thought="Hm.")
    path = script(thought, {"content": " ".join(ANSWER)}, thought)
    task = ("run", "Write.", *model_options(path), "--print")
    async with open_terminal(perdure, *task, columns=columns, pipe_stdout=True) as terminal:
        assert terminal.process.stdout is not None
        written = (await terminal.process.stdout.read()).decode()
        assert await terminal.wait_for_end() == 0
        assert (written, terminal.text.strip()) == (f"{' '.join(ANSWER)}\n", "")
    limited = (*task, "--max-iterations", "1")
    async with open_terminal(perdure, *limited, columns=columns, pipe_stdout=True) as terminal:
        assert terminal.process.stdout is not None
        assert await terminal.process.stdout.read() == b""
        assert await terminal.wait_for_end() == 1
        text = await terminal.wait_for("limited (max_iterations: ")
        assert "\x1b" not in text
        assert max(map(len, terminal.lines)) <= columns


@pytest.mark.long
async def test_images_are_named_in_a_run_and_in_the_chat_that_goes_on(
    perdure: Perdure, script: Script, tmp_path: Path
) -> None:
    image = tmp_path / "dot.png"
    image.write_bytes(b"\x89PNG\r\n\x1a\n")
    path = script({"content": "Seen."}, {"content": "Half", "finish_reason": "length"})
    task = ("run", "Look.", "--image", str(image), *model_options(path))
    async with open_terminal(perdure, *task) as terminal:
        await terminal.wait_for("Look.", "[1 image]", "Seen.")
        assert await terminal.wait_for_end() == 0
        name = re.findall(r"conversation  ([0-9a-f-]{36})", terminal.text)[0]
    state = str(tmp_path / "state")
    async with open_terminal(perdure, "chat", "--resume", name, XDG_STATE_HOME=state) as terminal:
        await terminal.wait_for("[1 image]", "Seen.", "/help")
        terminal.type(f"Again: @{image}\r")
        await terminal.wait_for("Attached: ", "[The answer ends at its length limit")
        terminal.type("/quit\r")
        assert await terminal.wait_for_end() == 0


@pytest.mark.long
async def test_a_note_beside_a_growing_answer_stands_on_its_own_line(perdure: Perdure) -> None:
    closed = ("--model", "openai/mine", "--api-base", "http://127.0.0.1:9/v1")
    async with open_terminal(perdure, "run", "Go.", *closed, columns=120) as terminal:
        await terminal.wait_for("The model does not answer")
        await terminal.wait_for("  agent")
        [note] = [line for line in terminal.lines if "The model does not answer" in line]
        assert note.startswith("The model does not answer (asked ")
