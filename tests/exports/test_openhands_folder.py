"""The OpenHands SDK's folder; `make openhands` opens it with the SDK."""

import json
import shutil
from pathlib import Path

import pytest

from perdure.exports.format import Format
from perdure.exports.openhands import OPENHANDS
from perdure.exports.raw import RAW
from perdure.testing.errors import ScriptError
from perdure.testing.replay import read_recording
from tests.builders import CONVERSATION
from tests.exports.checks import export_files
from tests.exports.sample_log import ABOUT, sample_entries

FOLDER = CONVERSATION.replace("-", "")


def test_events_are_numbered_without_a_gap_where_the_log_has_one() -> None:
    names = list(
        export_files(OPENHANDS, ABOUT, [entry for entry in sample_entries() if entry.seq != 9])
    )
    numbers = [name.removeprefix(f"{FOLDER}/events/event-")[:5] for name in names[:-1]]
    assert numbers == [f"{nth:05}" for nth in range(len(sample_entries()) - 1)]
    assert names[-1] == f"{FOLDER}/base_state.json"


def test_the_usage_is_in_the_state() -> None:
    state = json.loads(
        export_files(OPENHANDS, ABOUT, sample_entries())[f"{FOLDER}/base_state.json"]
    )
    metrics = state["stats"]["usage_to_metrics"]["agent"]
    assert metrics["accumulated_cost"] == 2.125
    assert metrics["accumulated_token_usage"]["prompt_tokens"] == 659


@pytest.mark.parametrize(("made", "place"), [(RAW, "log.jsonl"), (OPENHANDS, FOLDER)])
def test_an_export_can_be_repeated(made: Format, place: str, tmp_path: Path) -> None:
    for name, body in export_files(made, ABOUT, sample_entries()).items():
        path = tmp_path / (name or place)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    recording = read_recording(tmp_path / place)
    assert [message.text for message in recording.user_messages][1:] == [
        "Go <on>\x1b[31m & on.",
        "Thanks. One more.",
    ]
    assert [len(answer.tool_calls or ()) for answer in recording.answers] == [3, 1, 1, 1, 0, 1]


def test_the_folder_around_one_export_is_enough_and_that_around_two_is_refused(
    tmp_path: Path,
) -> None:
    for name, body in export_files(OPENHANDS, ABOUT, sample_entries()).items():
        for place in ("one", "two"):
            path = tmp_path / "all" / place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)
    assert len(read_recording(tmp_path / "all" / "one").user_messages) == 3
    with pytest.raises(ScriptError, match=r"2 conversations: name one of them, such as .*one"):
        read_recording(tmp_path / "all")
    shutil.rmtree(tmp_path / "all" / "two")
    (tmp_path / "all" / "notes.json").write_text("{}")
    assert len(read_recording(tmp_path / "all").user_messages) == 3
