"""Turns on the screen of `perdure chat`: what is shown while they run, and how they are left."""

import asyncio
import re
import signal
from collections.abc import Callable

import pytest

from tests.cli.chat.conftest import OpenChat, both_widths
from tests.cli.command import HOLD, Perdure, model_options, release, tool_call_answer

Script = Callable[..., str]


def edit(command: str, **arguments: str) -> dict[str, object]:
    return tool_call_answer("file_editor", command=command, path="hello.py", **arguments)


@pytest.mark.long
async def test_a_call_is_shown_before_its_output_which_is_live_and_then_folded(
    open_chat: OpenChat, script: Script, perdure: Perdure
) -> None:
    count = f"echo tick 1; echo tick 2; {HOLD}; for i in 3 4 5 6 7 8; do echo tick $i; done"
    path = script(tool_call_answer("terminal", command=count), "Counted.")
    async with open_chat(*model_options(path)) as chat:
        await chat.wait_for("/help")
        chat.type("Count.\r")
        await chat.wait_for("  * $ echo tick 1", "  tick 2", "A tool runs")
        assert "->" not in chat.text, "it is still at work"
        await release(perdure)
        await chat.wait_for("Counted.")
        await chat.wait_until(lambda: "A tool runs" not in chat.text, "the end of the spinner")
        assert chat.text.index("$ echo tick 1") < chat.text.index("-> 8 lines")
        assert "tick 8" not in chat.text
        assert "... 4 more lines: Ctrl-O or /show" in chat.text
        chat.type("\x0f")
        await chat.wait_for("tick 8")


@pytest.mark.long
async def test_what_is_typed_during_a_turn_is_seen_and_queued_and_never_lost(
    open_chat: OpenChat, script: Script, perdure: Perdure
) -> None:
    begun = tool_call_answer("terminal", command=f"echo begun; {HOLD}")
    path = script(begun, "Both.", "More.")
    async with open_chat(*model_options(path)) as chat:
        await chat.wait_for("/help")
        chat.type("Begin.\r")
        await chat.wait_for("  begun")
        chat.type("And then this")
        await chat.wait_for("> And then this")
        chat.type("\r")
        await chat.wait_for("  queued: And then this")
        await release(perdure)
        await chat.wait_for("Both.")
        await chat.wait_until(lambda: "queued" not in chat.text, "the end of the queue")
        await chat.wait_until(lambda: "> And then this" in chat.lines, "the message as it is read")
        assert chat.lines.count("> And then this") == 1
        assert chat.text.index("-> begun") < chat.text.index("> And then this")
        assert chat.text.index("> And then this") < chat.text.index("Both.")


@pytest.mark.long
@both_widths
async def test_one_ctrl_c_interrupts_and_at_rest_it_clears_the_line_and_says_how_to_leave(
    open_chat: OpenChat, script: Script, columns: int
) -> None:
    path = script(tool_call_answer("terminal", command="echo begun; sleep 60"), "Well.")
    async with open_chat(*model_options(path), columns=columns) as chat:
        await chat.wait_for("/help")
        chat.type("Sleep.\r")
        await chat.wait_for("  begun")
        chat.type("\x03")
        await chat.wait_for("Interrupting.", "idle: interrupted by the user")
        assert "user interrupted" not in chat.text, "it is said once"
        await asyncio.sleep(2)  # a second ^C would leave
        chat.type("half a thought")
        await chat.wait_for("> half a thought")
        chat.type("\x03")
        await chat.wait_until(lambda: "half a thought" not in chat.text, "the empty line")
        chat.type("\x03")
        await chat.wait_for("^D or /quit leaves")
        chat.type("\x03")
        assert await chat.wait_for_end() == 4
        assert "The conversation is at rest." in chat.text


@pytest.mark.long
async def test_two_ctrl_c_interrupt_and_leave_and_say_so(
    open_chat: OpenChat, script: Script, perdure: Perdure
) -> None:
    path = script(tool_call_answer("terminal", command="echo begun; sleep 60"))
    async with open_chat(*model_options(path), columns=200) as chat:
        await chat.wait_for("/help")
        chat.type("Sleep.\r")
        await chat.wait_for("  begun")
        chat.type("\x03\x03")
        assert await chat.wait_for_end() == 0
        await chat.wait_for("The turn is interrupted, and the conversation waits for you.")
        name = re.findall(r"chat --resume ([0-9a-f-]{36})", chat.text)[-1]
    watched = await perdure("watch", name, "--until-rest")
    assert re.search(r"user +interrupted", watched.out)


@pytest.mark.long
@pytest.mark.parametrize("columns", [80, 200])
async def test_ctrl_d_leaves_a_turn_at_work_and_it_goes_on_to_its_end(
    open_chat: OpenChat, script: Script, perdure: Perdure, columns: int
) -> None:
    begun = tool_call_answer("terminal", command=f"echo begun; {HOLD}")
    path = script(begun, "Done alone.")
    async with open_chat(*model_options(path), columns=columns) as chat:
        await chat.wait_for("/help")
        modes = chat.modes()
        chat.type("Go on without me.\r")
        await chat.wait_for("  begun")
        chat.type("\x04")
        assert await chat.wait_for_end() == 0
        await chat.wait_for("The turn goes on without you: `perdure watch ")
        assert chat.modes() != modes, "the line's modes are back"
        assert "A tool runs" not in chat.text, "nothing is left of the live region"
        name = re.findall(r"chat --resume ([0-9a-f-]{36})", chat.text)[-1]
    await release(perdure)
    watched = await perdure("watch", name, "--until-rest")
    assert "Done alone." in watched.out
    assert "interrupted" not in watched.out
    async with open_chat("--resume", name) as chat:
        await chat.wait_for("> Go on without me.", "-> begun", "Done alone.")


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        *(pytest.param(it, marks=pytest.mark.long) for it in (signal.SIGHUP, signal.SIGINT)),
    ],
)
async def test_a_signal_gives_the_terminal_its_modes_back(
    open_chat: OpenChat, script: Script, number: signal.Signals
) -> None:
    async with open_chat(*model_options(script("Yes."))) as chat:
        before = chat.modes()
        await chat.wait_for("0 tokens")
        assert chat.modes() != before
        chat.process.send_signal(number)
        if number is signal.SIGINT:
            await chat.wait_for("^C once more")
            chat.process.send_signal(number)
        assert await chat.wait_for_end() == 0
        assert chat.modes() == before


@pytest.mark.long
async def test_edits_are_shown_as_differences_and_undo_goes_back_with_the_files(
    open_chat: OpenChat, script: Script
) -> None:
    path = script(
        edit("create", file_text="one\ntwo\n"),
        "Created.",
        edit("str_replace", old_str="two", new_str="three\nfour"),
        "Replaced.",
        tool_call_answer("terminal", command="cat hello.py"),
        "Shown.",
    )
    async with open_chat(*model_options(path)) as chat:
        await chat.wait_for("/help")
        chat.type("Create it.\r")
        await chat.wait_for("Created.")
        chat.type("Replace it.\r")
        await chat.wait_for("-> 2 lines added, 1 removed", "-two", "+three", "+four", "Replaced.")
        chat.type("/undo\r")
        await chat.wait_for("a fork of", "are taken back")
        await chat.wait_until(lambda: "> Replace it." in chat.screen[-8:], "the message to edit")
        assert chat.text.count("Created.") == 1, "nothing is printed again"
        chat.type("\r")
        await chat.wait_until(lambda: chat.text.count("-> 2 lines added, 1") == 2, "the same edit")


@pytest.mark.long
async def test_live_text_breaks_between_words_and_survives_a_resize(
    open_chat: OpenChat, script: Script
) -> None:
    words = "extraordinarily long words of an answer that grows " * 6 + "\u6f22\u5b57" * 50
    path = script({"content": f"# Heading\n\n{words} \U0001f600 end", "chunk_delay": 0.1})
    async with open_chat(*model_options(path)) as chat:
        await chat.wait_for("/help")
        chat.type("Say it.\r")
        await chat.wait_for("grows extraordinarily long")
        live = [line for line in chat.screen if line.startswith("  extra") or "words of" in line]
        assert live
        whole = {*words.split(), "#", "Heading"}
        for line in live[:-1]:
            assert set(line.split()) <= whole, "no word is broken"
        chat.resize(60, 30)
        await chat.wait_for("\U0001f600 end")
        await chat.wait_until(lambda: "The model writes" not in chat.text, "the end")
        await chat.wait_until(lambda: "Heading" in chat.lines, "a heading that stands at the left")
        assert max(map(len, chat.screen)) <= 60
        await chat.wait_until(lambda: chat.screen[-1].startswith(" "), "the status line, last")


@pytest.mark.long
async def test_nothing_is_coloured_with_no_color(open_chat: OpenChat, script: Script) -> None:
    path = script(tool_call_answer("terminal", command="echo begun; exit 3"), "**Bold** words.")
    async with open_chat(*model_options(path), NO_COLOR="1") as chat:
        await chat.wait_for("/help")
        chat.type("Go.\r")
        await chat.wait_for("-> exit 3, begun", "Bold words.")
        colours = re.findall(
            rb"\x1b\[(?:[0-9;]*;)?(?:3[0-7]|4[0-7]|9[0-7]|38|48)[;m]", chat.written
        )
        assert not colours


@pytest.mark.long
async def test_a_dumb_terminal_gets_lines_and_no_escape_codes(
    open_chat: OpenChat, script: Script
) -> None:
    async with open_chat(*model_options(script("Answered.")), TERM="dumb") as chat:
        await chat.wait_until(lambda: ">" in chat.screen, "the prompt")
        chat.type("Hello\r")
        await chat.wait_for("Answered.")
        assert b"\x1b" not in chat.written
