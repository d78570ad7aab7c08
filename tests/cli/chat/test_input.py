"""What is typed at `perdure chat`: lines, pastes, earlier input, commands and files."""

import asyncio
import base64
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.events.content import Content, ImageContent, TextContent, join_text
from perdure.events.messages import MessageEvent
from perdure.storage.log.event_log import EventLog
from perdure.storage.s3 import S3Store
from tests.cli.chat.conftest import OpenChat, both_widths
from tests.cli.command import model_options
from tests.cli.terminal import Terminal

Script = Callable[..., str]

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg=="
)


async def read_messages(store: S3Store, terminal: Terminal) -> list[Content]:
    """Read the parts of all messages of the user from the log of the chat on the terminal."""
    name = re.findall(r"conversation  ([0-9a-f-]{36})", terminal.text)[-1]
    log = EventLog(store, "local", name)
    events = [entry.event for entry in await log.read(0, await log.end())]
    messages = [it for it in events if isinstance(it, MessageEvent) and it.source == "user"]
    return [part for message in messages for part in message.llm_message.content]


@pytest.mark.long
@both_widths
async def test_a_paste_of_some_lines_is_one_message_and_a_long_one_is_named(
    open_chat: OpenChat, script: Script, store: S3Store, columns: int
) -> None:
    options = model_options(script("Read.", "Read all.", "Two."))
    async with open_chat(*options, columns=columns) as chat:
        await chat.wait_for("/help")
        chat.paste("one\ntwo\nthree\nfour")
        await chat.wait_for("  four")
        chat.type("\r")
        await chat.wait_for("Read.")
        chat.paste("\n".join(map(str, range(40))))
        await chat.wait_for("[pasted 40 lines]")
        chat.type(" is all\r")
        await chat.wait_for("Read all.")
        chat.type("first\x0asecond\\\rthird\r")
        await chat.wait_for("Two.")
        texts = [join_text([part]) for part in await read_messages(store, chat)]
    assert texts == [
        "one\ntwo\nthree\nfour",
        "\n".join(map(str, range(40))) + " is all",
        "first\nsecond\nthird",
    ]
    assert "> [pasted 40 lines] is all" in chat.lines


@pytest.mark.long
async def test_earlier_input_is_found_in_the_next_session_by_its_owner_alone(
    open_chat: OpenChat, script: Script, state_folder: Path
) -> None:
    options = model_options(script("Yes."))
    async with open_chat(*options) as chat:
        await chat.wait_for("/help")
        chat.type("a needle in the hay\r")
        await chat.wait_for("Yes.")
        chat.type("/cost\r")
        await chat.wait_for("  all ")
        chat.type("/quit\r")
        assert await chat.wait_for_end() == 0
    history = state_folder / "perdure" / "chat_history"
    assert history.stat().st_mode & 0o777 == 0o600
    async with open_chat(*options) as chat:
        await chat.wait_for("/help")
        chat.type("\x12needle")
        await chat.wait_for("> a needle in the hay")


@pytest.mark.long
async def test_a_message_is_written_in_the_editor_and_sent_by_enter(
    open_chat: OpenChat, script: Script, tmp_path: Path
) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "%s, by the\neditor" "$(cat "$1")" > "$1"\n')
    editor.chmod(0o700)
    async with open_chat(*model_options(script("Yes.", "Again.")), EDITOR=str(editor)) as chat:
        await chat.wait_for("/help")
        chat.type("Written\x18\x05")
        await chat.wait_for("> Written, by the\n  editor\n")
        chat.type("\r")
        await chat.wait_for("Yes.")
        chat.type("/edit\r")
        await chat.wait_for("> , by the\n  editor\n")


@pytest.mark.long
async def test_commands_and_files_are_completed(
    open_chat: OpenChat, script: Script, tmp_path: Path
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "handsome.txt").write_text("x")
    args = ("--workspace", str(folder), *model_options(script("Yes.")))
    async with open_chat(*args) as chat:
        await chat.wait_for("/help")
        chat.type("/comp")
        await chat.wait_for("/compact")
        chat.type("\t\x15look at @hand")
        await chat.wait_for("handsome.txt")
        chat.type("\t")
        await chat.wait_for("> look at @handsome.txt")
        chat.type("\x15/model openai/gpt-5-nan\t")
        await chat.wait_for("openai/gpt-5-nano-2025")


@pytest.mark.long
@both_widths
async def test_a_named_file_is_attached_unless_the_agent_can_open_it(
    open_chat: OpenChat, script: Script, store: S3Store, tmp_path: Path, columns: int
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "inner.txt").write_text("inside")
    (tmp_path / "outer.txt").write_text("outside")
    (tmp_path / "dot.png").write_bytes(PIXEL)
    args = ("--workspace", str(folder), *model_options(script("Seen.", "Seen too.")))
    async with open_chat(*args, columns=columns) as chat:
        await chat.wait_for("/help")
        chat.type(f"Read @inner.txt, @{tmp_path}/outer.txt and @no/such; see @{tmp_path}/dot.png\r")
        await chat.wait_for("Seen.", "There is no file no/such")
        chat.type(f"'{tmp_path}/dot.png' once more\r")
        await chat.wait_for("Seen too.")
        chat.type(f"@{tmp_path}/state/perdure\r")  # a folder
        await chat.wait_for("Attached: ")
        parts = await read_messages(store, chat)
    text = join_text(parts[:1])
    assert text.startswith(f"Read inner.txt, {tmp_path}/outer.txt and @no/such; see ")
    assert "inside" not in text
    assert f'<file path="{tmp_path}/outer.txt">\noutside\n</file>' in text
    images = [part for part in parts if isinstance(part, ImageContent)]
    assert len(images) == 2, "an image that was dropped on the terminal is one, too"


@both_widths
async def test_the_banner_says_who_answers_and_where(
    open_chat: OpenChat, script: Script, columns: int, tmp_path: Path
) -> None:
    path = script("Yes.")
    args = ("--workspace", str(tmp_path), "--confirm", "risky", *model_options(path))
    async with open_chat(*args, columns=columns) as chat:
        text = await chat.wait_for("confirm risky:HIGH")
        words = "".join(text.split())
        assert path in words
        assert f"workspace{tmp_path}" in words
        assert "conversation" in text
        assert "without network" in text
        assert "/help" in text
        assert chat.screen[-1].startswith(f" {Path(path).name[:20]}")
        chat.type("\x04")
        assert await chat.wait_for_end() == 0
        assert "comes back" not in chat.text, "nothing has begun"


@pytest.mark.long
async def test_the_first_message_has_the_images_of_the_option_and_the_budget_is_shown(
    open_chat: OpenChat, script: Script, store: S3Store, tmp_path: Path
) -> None:
    (tmp_path / "dot.png").write_bytes(PIXEL)
    path = model_options(script("Seen.", "Again."))
    async with open_chat(*path, "--image", f"{tmp_path}/dot.png", "--max-budget", "2.5") as chat:
        await chat.wait_for("/help", "$0 of $2.50")
        assert re.search(r"sandbox +as its worker chooses, without network", chat.text)
        chat.type("Look.\r")
        await chat.wait_for("Attached: ", "Seen.")
        chat.type("And now?\r")
        await chat.wait_for("Again.")
        messages = await read_messages(store, chat)
        name = re.findall(r"conversation  ([0-9a-f-]{36})", chat.text)[-1]
    assert [isinstance(part, ImageContent) for part in messages] == [False, True, False]
    async with open_chat("--resume", name) as chat:
        await chat.wait_for("/help")
        assert re.search(r"sandbox +(bubblewrap|uid|landlock|none), without network", chat.text)


@pytest.mark.long
async def test_each_of_fifty_enters_sends_while_a_long_answer_is_printed(
    open_chat: OpenChat, script: Script, store: S3Store
) -> None:
    answer = {"content": "\n\n".join(["BEGIN", *["Many words of one answer. " * 40] * 40])}
    sent = [f"message {number}" for number in range(50)]
    async with open_chat(*model_options(script(answer, *["Read."] * 60))) as chat:
        await chat.wait_for("/help")
        chat.type("Write much.\r")
        await chat.wait_until(lambda: b"BEGIN" in chat.written, "the beginning of the answer")
        with chat.stalled():
            for text in sent:
                chat.type(f"{text}\r")
                await asyncio.sleep(0.01)
        await chat.wait_until(lambda: f"> {sent[-1]}" in chat.lines, "the last message")
        messages = await read_messages(store, chat)
    texts = [part.text for part in messages if isinstance(part, TextContent)]
    assert texts == ["Write much.", *sent]
