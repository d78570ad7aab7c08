"""Approvals at `perdure chat`: no answer is guessed at."""

from collections.abc import Callable

import pytest

from perdure.cli.chat.approvals import parse_answer
from tests.cli.chat.conftest import OpenChat, both_widths
from tests.cli.command import model_options, tool_call_answer

Script = Callable[..., str]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("y", ("yes", "")),
        (" YES ", ("yes", "")),
        ("n", ("no", "")),
        ("no, it is mine", ("no", "it is mine")),
        ("a", ("always", "")),
        ("e", ("explain", "")),
        ("ok", (None, "")),
        ("yes please", (None, "")),
        ("?", (None, "")),
        ("", (None, "")),
    ],
)
def test_only_the_choices_are_answers(text: str, answer: tuple[str | None, str]) -> None:
    assert parse_answer(text) == answer


@pytest.mark.long
@both_widths
async def test_calls_are_explained_allowed_rejected_with_a_reason_and_allowed_for_good(
    open_chat: OpenChat, script: Script, columns: int
) -> None:
    first = tool_call_answer("terminal", command="echo one")
    first["tool_calls"] += tool_call_answer("terminal", command="echo two")["tool_calls"]
    more = tool_call_answer("terminal", command="echo three")
    last = tool_call_answer("terminal", command="echo four")
    options = model_options(script(first, "First half.", more, last, "Second half."))
    async with open_chat("--confirm", "always", *options, columns=columns) as chat:
        await chat.wait_for("/help")
        chat.type("Go.\r")
        await chat.wait_for("? LOW risk  $ echo one", "(e)xplain:")
        for guess in ("ok", "yes please", "?"):
            chat.type(f"{guess}\r")
            await chat.wait_for(f"{guess!r} is no answer: y allows it")
        assert "->" not in chat.text
        chat.type("e\r")
        await chat.wait_for("  command    echo one", "  risk       LOW")
        chat.type("y\r")
        await chat.wait_for("? LOW risk  $ echo two")
        chat.type("n\r")
        await chat.wait_for("Why not?")
        chat.type("I would rather not.\r")
        await chat.wait_for("rejected: I would rather not.", "$ echo one: one", "First half.")
        chat.type("On.\r")
        await chat.wait_for("? LOW risk  $ echo three")
        chat.type("a\r")
        await chat.wait_for("nothing waits for you", "-> four", "Second half.", "confirm never")
        assert chat.text.count("? LOW risk") == 3


@pytest.mark.long
async def test_ctrl_c_at_a_question_rejects_what_waits(open_chat: OpenChat, script: Script) -> None:
    path = script(tool_call_answer("terminal", command="echo one"), "Well.")
    async with open_chat("--confirm", "always", *model_options(path), columns=200) as chat:
        await chat.wait_for("/help")
        chat.type("Go.\r")
        await chat.wait_for("(e)xplain:")
        chat.type("ye\x03")
        await chat.wait_until(lambda: "(e)xplain: ye" not in chat.text, "the empty line")
        chat.type("\x03")
        await chat.wait_for("idle: interrupted by the user")
        assert "rejected" in chat.text
        await chat.wait_until(lambda: ">" in chat.screen, "the prompt")


@pytest.mark.long
async def test_an_unanswered_question_can_be_left(open_chat: OpenChat, script: Script) -> None:
    path = script(tool_call_answer("terminal", command="echo one"), "Well.")
    async with open_chat("--confirm", "always", *model_options(path), columns=200) as chat:
        await chat.wait_for("/help")
        chat.type("Go.\r")
        await chat.wait_for("(e)xplain:")
        chat.type("\x04")
        assert await chat.wait_for_end() == 4
        await chat.wait_for("The conversation waits for your answer.", "perdure approve ")
