"""What a person sees on a real terminal: words while they grow, and each of them once."""

import asyncio
import os
import pty
import re
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest

from tests.cli.command import COMMAND, Perdure, calls, scripted

Script = Callable[..., str]


async def on_a_terminal(perdure: Perdure, args: Sequence[str], typed: bytes = b"") -> str:
    """All that the command writes to its terminal, in order."""
    ours, theirs = pty.openpty()
    env = {**perdure.env, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    process = await asyncio.create_subprocess_exec(
        *COMMAND, *args, env=env, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    os.write(ours, typed)
    written: list[bytes] = []
    with suppress(OSError):  # how a terminal ends
        while read := await asyncio.to_thread(os.read, ours, 65536):
            written.append(read)
    os.close(ours)
    assert await process.wait() == 0, b"".join(written)
    return b"".join(written).decode()


def screen(written: str) -> str:
    """What is left once the terminal has obeyed: lines that were cleared are gone."""
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
@pytest.mark.parametrize("command", ["run", "chat"])
async def test_words_are_shown_while_they_grow_and_then_once(
    perdure: Perdure, script: Script, command: str
) -> None:
    slow = {"content": "one two three four five", "chunk_delay": 0.5}
    path = script(slow | calls("terminal", command="echo begun; sleep 2; echo over"), "Done.")
    task, typed = (["Count."], b"") if command == "run" else ([], b"Count.\n/quit\n")
    written = await on_a_terminal(perdure, [command, *task, *scripted(path)], typed)
    assert re.search(r"agent +one two [^f]*\x1b\[0m", written), "it was seen to grow"
    assert re.search(r"output +begun\x1b\[0m", written)
    left = screen(written)
    assert left.count("one two three four five") == 1
    assert left.count("Done.") == 1
    assert "  output  " not in left


@pytest.mark.long
async def test_a_watch_on_a_terminal_needs_no_temporal(perdure: Perdure, script: Script) -> None:
    ran = await perdure("run", "Say it.", *scripted(script("Said.")), "-ojson")
    name = ran.json["result"]["conversation_id"]
    alone = perdure.where(TEMPORAL_ADDRESS="127.0.0.1:1")
    written = await on_a_terminal(alone, ["watch", name, "--until-rest"])
    assert screen(written).count("Said.") == 1
