"""`perdure chat`: lines in, a conversation out."""

import asyncio
import re
import signal
from collections.abc import Callable

import pytest

from tests.cli.command import Perdure, model_options, tool_call_answer, wait_for_line

Script = Callable[..., str]


@pytest.mark.long
async def test_each_line_is_a_message_and_the_last_turn_gives_the_exit_code(
    perdure: Perdure, script: Script
) -> None:
    look = {
        **tool_call_answer("terminal", command="echo one; echo two; exit 3"),
        "content": "Let me see.",
    }
    path = script(look, {"content": "Two lines.\n" * 20})
    lines = "What is there?\n\n/status\n/nothing\nAnd now?\n"
    done = await perdure("chat", *model_options(path), stdin=lines)
    assert done.code == 1, done
    assert done.out.startswith("Let me see.\n"), "no prompt where there is no terminal"
    assert "  * $ echo one; echo two; exit 3\n    -> exit 3, 2 lines\n       one\n" in done.out
    assert done.out.count("Two lines.\n") == 20, "the words of the agent are shown in full"
    assert "  status       awaiting_user\n" in done.out
    assert "There is no /nothing: /help lists" in done.err
    assert "script_exhausted: " in done.out
    name = re.findall(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", done.err)[0]
    again, newest = await asyncio.gather(
        perdure("chat", "--resume", name, stdin=""), perdure("ls", "--limit", "1", "-ojson")
    )
    assert again.out.startswith("\n> And now?\n"), "the newest exchange is shown"
    assert newest.json[0]["id"] == name


@pytest.mark.long
async def test_pending_calls_are_asked_about_one_by_one(perdure: Perdure, script: Script) -> None:
    both = tool_call_answer("terminal", command="echo one")
    both["tool_calls"] += tool_call_answer("terminal", command="echo two")["tool_calls"]
    path = script(both, {"content": "Did one of them."})
    first = await perdure("chat", "--confirm", "always", *model_options(path), stdin="Go.\ny\n")
    assert first.code == 4, "it waits for a person"
    assert first.out.count("  ? ") == 2
    assert "perdure approve " in first.err
    name = first.err.split()[1]
    done = await perdure("chat", "--resume", name, stdin="\nok\nn I would rather not.\n")
    assert done.code == 0
    assert "'ok' is no answer: y allows it" in done.err
    assert "risk  $ echo two\n" in done.out
    assert "    -> rejected: I would rather not.\n" in done.out
    assert "    -> $ echo one: one\n" in done.out
    assert "Did one of them.\n" in done.out


@pytest.mark.long
async def test_one_ctrl_c_interrupts_the_turn_and_two_leave_the_conversation(
    perdure: Perdure, script: Script
) -> None:
    path = script(
        {**tool_call_answer("terminal", command="echo begun; sleep 60"), "content": "I sleep."}
    )
    async with perdure.start("chat", *model_options(path)) as chat:
        assert chat.stdin is not None
        chat.stdin.write(b"Sleep.\n")
        await wait_for_line(chat.stdout, "I sleep.")
        chat.send_signal(signal.SIGINT)
        await wait_for_line(chat.stdout, "Interrupting.")
        await wait_for_line(chat.stdout, "-> terminal was stopped by the user")
        await wait_for_line(chat.stderr, "idle: interrupted by the user")
        chat.stdin.write(b"/status\n")
        await wait_for_line(chat.stdout, "  id  ")  # the last line of the status
        await asyncio.sleep(1)  # at the prompt nothing is left to be interrupted
        chat.send_signal(signal.SIGINT)
        _, err = await chat.communicate()
    assert chat.returncode == 0
    assert b"The conversation is at rest. `perdure chat --resume" in err


@pytest.mark.long
async def test_contradicting_options_are_refused_before_anything_is_started(
    configured: Perdure, script: Script
) -> None:
    model = model_options(script({"content": "Never."}))
    both, silent = await asyncio.gather(
        configured("chat", "--last", *model),
        configured("chat", *model, stdin="/pause\n/help\n/quit\nHello?\n"),
    )
    assert (both.code, "keeps its agent" in both.err) == (2, True)
    assert "begins with your first message" in silent.err
    assert "/compact" in silent.out
    assert "conversation  " not in silent.err, "nothing has begun"
