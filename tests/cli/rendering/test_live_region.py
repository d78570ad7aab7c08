"""Running steps on a terminal of 80 columns, and one-line results."""

import pytest
from rich.cells import cell_len

from perdure.cli.consoles import stdout
from perdure.cli.rendering.chat import summarize_result
from perdure.cli.rendering.live_region import HEAD_COLUMNS, MAX_STEP_LINES, step_lines
from perdure.client.running_step import RunningStep
from perdure.events.event import parse_event
from perdure.events.tools import ObservationEvent

WIDTH = stdout.width


def render_step(text: str, attempt: int = 1, failure: str | None = None) -> list[str]:
    step = RunningStep("llm.chat", "1", attempt, text, "run", failure)
    return [line.plain for line in step_lines(step, MAX_STEP_LINES)]


def test_no_line_is_wider_than_the_terminal() -> None:
    for text in ("x" * 1000, "\u6f22\u5b57" * 300, "a\tb" * 300, "\x1b[2J" * 300):
        assert 1 < len(render_step(text)) <= MAX_STEP_LINES
        assert max(map(cell_len, render_step(text))) < WIDTH
        assert "\x1b" not in "".join(render_step(text)), "a model must not steer the terminal"
    assert max(map(len, render_step("", 2, "because " * 100))) < WIDTH


def test_the_newest_lines_of_a_step_are_shown() -> None:
    text = "\n".join(f"line {number}" for number in range(100))
    assert len(render_step(text)) == MAX_STEP_LINES
    assert render_step(f"{text}\n")[-1] == f"{' ' * HEAD_COLUMNS}line 99"


def test_a_retried_step_is_marked_with_the_failure() -> None:
    assert render_step("") == ["  agent       ..."]
    assert render_step("", 2) == ["  agent       (attempt 2)"]
    first, second = render_step("One more", 3, "overloaded:\ntry later")
    assert first == "  agent       (attempt 3: overloaded: try later)"
    assert second == f"{' ' * HEAD_COLUMNS}One more"


@pytest.mark.parametrize(
    ("text", "exit_code", "summary"),
    [
        ("[Command finished with exit code 0]", 0, "no output"),
        ("one\n[Command finished with exit code 0]", 0, "one"),
        ("one\ntwo\n[Command finished with exit code 2]", 2, "exit 2, 2 lines"),
        ("one\n[Command finished with exit code 1]\n[A new shell was begun]", 1, "exit 1, one"),
    ],
)
def test_the_result_of_a_command_is_summarized_in_one_line(
    text: str, exit_code: int, summary: str
) -> None:
    observation = {
        "kind": "TerminalObservation",
        "content": [{"type": "text", "text": text}],
        "exit_code": exit_code,
    }
    event = parse_event(
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
    assert isinstance(event, ObservationEvent)
    assert summarize_result(event) == summary
