"""A folder as the OpenHands SDK keeps one; `make openhands` has it opened by theirs."""

import json
from pathlib import Path

import pytest

from exports.format import Format
from exports.openhands_folder import OPENHANDS
from exports.raw import RAW
from models.recording import read_recording
from tests.builders import CONVERSATION
from tests.exports.checks import exported
from tests.exports.story import ABOUT, story

FOLDER = CONVERSATION.replace("-", "")


def test_events_are_numbered_without_a_gap_where_the_log_has_one() -> None:
    names = list(exported(OPENHANDS, ABOUT, [one for one in story() if one.seq != 9]))
    numbers = [name.removeprefix(f"{FOLDER}/events/event-")[:5] for name in names[:-1]]
    assert numbers == [f"{nth:05}" for nth in range(len(story()) - 1)]
    assert names[-1] == f"{FOLDER}/base_state.json"


def test_what_was_spent_is_in_the_state() -> None:
    state = json.loads(exported(OPENHANDS, ABOUT, story())[f"{FOLDER}/base_state.json"])
    metrics = state["stats"]["usage_to_metrics"]["agent"]
    assert metrics["accumulated_cost"] == 2.125
    assert metrics["accumulated_token_usage"]["prompt_tokens"] == 659


@pytest.mark.parametrize(("made", "place"), [(RAW, "log.jsonl"), (OPENHANDS, FOLDER)])
def test_an_export_can_be_done_again(made: Format, place: str, tmp_path: Path) -> None:
    for name, body in exported(made, ABOUT, story()).items():
        path = tmp_path / (name or place)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    found = read_recording(tmp_path / place)
    assert [one.text for one in found.said][1:] == ["Go <on>\x1b[31m & on.", "Thanks. One more."]
    assert [len(one.tool_calls or ()) for one in found.answers] == [3, 1, 1, 1, 0, 1]
