"""Questions of an agent at `perdure chat`: the next line is the answer."""

from collections.abc import Callable

import pytest

from perdure.cli.questions import find_choice
from tests.cli.chat.conftest import OpenChat
from tests.cli.command import Perdure, model_options, tool_call_answer

Script = Callable[..., str]

QUESTION = tool_call_answer("ask_user", question="Which colour?", choices=["red", "2nd"])
TOOLS = ("--tools", "ask_user,finish")


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("1", "red"),
        (" RED ", "red"),
        ("2", "2nd"),
        ("3", None),
        ("0", None),
        ("-1", None),
        ("redder", None),
        ("²", None),
        ("", None),
    ],
)
def test_a_choice_is_named_by_its_number_or_its_words(text: str, choice: str | None) -> None:
    assert find_choice(text, ["red", "2nd"]) == choice


def test_a_number_that_is_a_choice_stands_for_itself() -> None:
    assert find_choice("2", ["2", "1"]) == "2"


@pytest.mark.long
async def test_a_question_is_answered_at_a_terminal(open_chat: OpenChat, script: Script) -> None:
    path = script(QUESTION, {"content": "Red it is."})
    async with open_chat(*TOOLS, *model_options(path), columns=100) as chat:
        await chat.wait_for("/help")
        chat.type("Go.\r")
        await chat.wait_for("? Which colour?", "1. red", "2. 2nd")
        chat.type("1\r")
        await chat.wait_for("The user answers: red", "Red it is.")
        chat.type("\x04")
        assert await chat.wait_for_end() == 0


@pytest.mark.long
async def test_a_question_is_answered_by_the_next_line_of_a_pipe(
    perdure: Perdure, script: Script
) -> None:
    path = script(QUESTION, {"content": "Green it is."})
    ran = await perdure("chat", *TOOLS, *model_options(path), stdin="Go.\ngreen, please\n")
    assert ran.code == 0, ran.err
    assert "? Which colour?" in ran.out
    assert "The user answers: green, please" in ran.out
    assert "Green it is." in ran.out
