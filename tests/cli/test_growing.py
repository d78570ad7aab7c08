"""How a step at work is shown on a terminal of 80 columns."""

import pytest
from rich.cells import cell_len

from cli.chat_shown import result_of
from cli.growing import HEAD, LINES, lines_of
from cli.output import stdout
from client.live import Growing
from events.event import event_from

WIDTH = stdout.width


def shown(text: str, attempt: int = 1, failure: str | None = None) -> list[str]:
    step = Growing("llm.chat", "1", attempt, text, "run", failure)
    return [line.plain for line in lines_of(step, LINES)]


def test_no_line_is_wider_than_the_terminal_whatever_it_is_made_of() -> None:
    for text in ("x" * 1000, "\u6f22\u5b57" * 300, "a\tb" * 300, "\x1b[2J" * 300):
        assert 1 < len(shown(text)) <= LINES
        assert max(map(cell_len, shown(text))) < WIDTH
        assert "\x1b" not in "".join(shown(text)), "a model must not steer the terminal"
    assert max(map(len, shown("", 2, "because " * 100))) < WIDTH


def test_the_newest_lines_are_those_that_are_shown() -> None:
    text = "\n".join(f"line {number}" for number in range(100))
    assert len(shown(text)) == LINES
    assert shown(f"{text}\n")[-1] == f"{' ' * HEAD}line 99"


def test_another_attempt_is_marked_with_its_reason() -> None:
    assert shown("") == ["  agent       ..."]
    assert shown("", 2) == ["  agent       (attempt 2)"]
    first, second = shown("One more", 3, "overloaded:\ntry later")
    assert first == "  agent       (attempt 3: overloaded: try later)"
    assert second == f"{' ' * HEAD}One more"


@pytest.mark.parametrize(
    ("text", "exit_code", "said"),
    [
        ("[Command finished with exit code 0]", 0, "no output"),
        ("one\n[Command finished with exit code 0]", 0, "one"),
        ("one\ntwo\n[Command finished with exit code 2]", 2, "exit 2, 2 lines"),
        ("one\n[Command finished with exit code 1]\n[A new shell was begun]", 1, "exit 1, one"),
    ],
)
def test_what_came_of_a_command_is_told_in_one_line(text: str, exit_code: int, said: str) -> None:
    observation = {
        "kind": "TerminalObservation",
        "content": [{"type": "text", "text": text}],
        "exit_code": exit_code,
    }
    event = event_from(
        {
            "id": "",
            "timestamp": "2025-01-01T10:00:00.000000",
            "kind": "ObservationEvent",
            "action_id": "a",
            "tool_name": "terminal",
            "tool_call_id": "c",
            "observation": observation,
        }
    )
    assert result_of(event) == said
