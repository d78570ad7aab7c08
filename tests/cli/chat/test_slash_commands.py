"""The slash commands of `perdure chat`, each as a person would use it."""

import base64
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.chat.conftest import OpenChat
from tests.cli.command import Perdure, model_options, tool_call_answer

Script = Callable[..., str]


@pytest.mark.long
async def test_views_show_and_take_elsewhere_what_is_in_the_conversation(
    open_chat: OpenChat, script: Script, tmp_path: Path
) -> None:
    look = tool_call_answer("terminal", command="seq 20") | {
        "usage": {"prompt_tokens": 1200, "completion_tokens": 34}
    }
    path = script(look, "The **answer**.")
    page = tmp_path / "page.html"
    async with open_chat(*model_options(path), columns=120, rows=60, DISPLAY="") as chat:
        await chat.wait_for("/help")
        chat.type("/undo\r/copy\r")
        await chat.wait_for("The conversation begins with your first message.")
        chat.type("Look.\r")
        await chat.wait_for("The answer.", "1,234 tokens | cost unknown")
        chat.type("/cost\r/tools\r/status\r/model\r/confirm\r")
        await chat.wait_for("1,200 in       34 out   cost unknown", "file_editor   ")
        await chat.wait_for("  status       awaiting_user", "> /confirm\nnever")
        chat.type("/show\r")
        await chat.wait_for("\n17\n18\n19\n20\n")
        chat.type("/show 99\r/show x\r/export nothing\r")
        await chat.wait_for("There is no seq 99", "'x' is no seq", "There is no format 'nothing'")
        chat.type(f"/export html {page}\r/copy\r")
        await chat.wait_for(f"Written to {page}.", "Copied 15 characters by the terminal")
        assert page.read_text().startswith("<!")
        code = re.findall(rb"\x1b]52;c;([A-Za-z0-9+/=]+)\x07", chat.written)
        assert base64.b64decode(code[-1]) == b"The **answer**."


@pytest.mark.long
async def test_steering_goes_on_with_a_fork_another_model_or_another_conversation(
    open_chat: OpenChat, script: Script, perdure: Perdure
) -> None:
    other = await perdure("run", "The other one.", *model_options(script("Other.")), "-ojson")
    other_id = other.json["conversation_id"]
    path, better = script("First.", "Second."), script("Never.", "Better.")
    async with open_chat(*model_options(path), columns=120) as chat:
        await chat.wait_for("/help")
        chat.type("/model scripted:nowhere.json\r/confirm sometimes\r/confirm risky:low\r")
        await chat.wait_for("There is no policy 'sometimes'", "confirm risky:LOW")
        chat.type(f"/model scripted:{path}\rBegin.\r")
        await chat.wait_for("First.")
        chat.type("/fork\r")
        await chat.wait_for("The chat goes on in ", "a fork of ")
        chat.type(f"/model scripted:{better}\r")
        await chat.wait_for("better" if "better" in better else Path(better).name[:20])
        chat.type("Again.\r")
        await chat.wait_for("Better.")
        chat.type("/resume\r")
        await chat.wait_for("(this one)", "The other one.", "/resume NUMBER opens one")
        chat.type(f"/resume {other_id[:13]}\r")
        await chat.wait_for(f"The chat goes on with {other_id}.", "> The other one.", "Other.")
        chat.type("/resume ffffffff\r")
        await chat.wait_for("is not a conversation id")
        chat.type("/detach\r")
        assert await chat.wait_for_end() == 2, "the last error"


@pytest.mark.long
async def test_resume_goes_on_after_an_interrupt(open_chat: OpenChat, script: Script) -> None:
    path = script(tool_call_answer("terminal", command="echo begun; sleep 60"), "Went on.")
    async with open_chat(*model_options(path)) as chat:
        await chat.wait_for("/help")
        chat.type("Sleep.\r")
        await chat.wait_for("  begun")
        chat.type("\x03")
        await chat.wait_for("idle: interrupted by the user")
        chat.type("/resume\r")
        await chat.wait_for("Went on.")


@pytest.mark.long
async def test_the_help_fits_a_terminal_of_80_columns(open_chat: OpenChat, script: Script) -> None:
    async with open_chat(*model_options(script("Yes.")), rows=60) as chat:
        await chat.wait_for("/help")
        chat.type("/help\r")
        text = await chat.wait_for("@path   ")
        listed = text[text.index("  /help  ") : text.index("@path   ")].split("\n")
        assert all(line.startswith("  ") or not line for line in listed), "no line is wrapped"
        chat.type("/condense\r")
        await chat.wait_for("The conversation begins with your first message.")
