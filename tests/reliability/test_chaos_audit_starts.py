"""The audit of clones, secrets, servers and debates finds planted violations."""

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from examples.bfcl.objects import StoredEvent
from perdure.agent.discussion.state import DiscussionStatus
from perdure.agent.discussion.tally import Tally
from reliability.chaos.audit.debates import check_debate, check_sequence
from reliability.chaos.audit.log import ViolationKind
from reliability.chaos.audit.start import (
    EXPECTED_OUTPUT,
    check_clone_files,
    check_secrets,
    check_start,
)
from reliability.chaos.load.debates import TALLY
from reliability.chaos.load.equipment import README
from reliability.crashes.debate import Debate


def event(seq: int, kind: str, **fields: Any) -> StoredEvent:
    return StoredEvent(f"{seq:06d}", seq, f"id-{seq}", {"kind": kind, **fields})


def answer(seq: int, tool: str, text: str) -> StoredEvent:
    observation = {"content": [{"text": text}]}
    fields = {"action_id": f"id-{seq - 1}", "tool_name": tool, "observation": observation}
    return event(seq, "ObservationEvent", **fields)


CLONE = event(0, "ConversationStateUpdateEvent", key="repository", value={"commit": "c"})
COMMAND = event(1, "ActionEvent", tool_name="terminal", action={"command": "cat"})
SUM = event(3, "ActionEvent", tool_name="one__add", action={"data": {"a": 2}})
START = [CLONE, COMMAND, answer(2, "terminal", f"1\n{EXPECTED_OUTPUT}\n"), SUM]

STARTS: dict[str, tuple[list[StoredEvent], list[ViolationKind]]] = {
    "whole": ([*START, answer(4, "one__add", "3")], []),
    "no clone": (START[1:], [ViolationKind.LOST]),
    "two clones": ([*START, replace(CLONE, seq=9)], [ViolationKind.DUPLICATED]),
    "a command that found no file": (
        [CLONE, COMMAND, answer(2, "terminal", "cat: project/README: No such file")],
        [ViolationKind.LOST],
    ),
    "a secret that was not masked": (
        [CLONE, COMMAND, answer(2, "terminal", EXPECTED_OUTPUT.replace("<secret:", "value-"))],
        [ViolationKind.LOST],
    ),
    "another sum": ([*START, answer(4, "one__add", "4")], [ViolationKind.DAMAGED]),
}


@pytest.mark.parametrize("name", STARTS)
def test_a_start_that_is_not_as_it_should_be_is_found(name: str) -> None:
    events, wrong = STARTS[name]
    assert [violation.kind for violation in check_start(events)] == wrong


SECRETS = {"KEY": "hunter2-hunter2"}


def test_a_secret_in_an_object_is_found() -> None:
    assert list(check_secrets({"a": b"<secret:KEY>"}, SECRETS)) == []
    encoded = b'{"body": "' + base64.b64encode(b"hunter2-hunter2") + b'"}'
    for body in (b"it is hunter2-hunter2.", encoded):
        [violation] = check_secrets({"a": body}, SECRETS)
        assert violation.kind is ViolationKind.EXPOSED
        assert "hunter2" not in violation.description


def test_a_snapshot_without_the_clone_or_with_a_secret_is_found(tmp_path: Path) -> None:
    assert [found.kind for found in check_clone_files(tmp_path, SECRETS)] == [ViolationKind.LOST]
    (tmp_path / "project").mkdir()
    (tmp_path / "project/README").write_text(f"{README}\n")
    assert list(check_clone_files(tmp_path, SECRETS)) == []
    (tmp_path / "project/config").write_text("token = hunter2-hunter2")
    assert [found.kind for found in check_clone_files(tmp_path, SECRETS)] == [ViolationKind.EXPOSED]


def stored(*sequences: int) -> dict[str, bytes]:
    return {
        f"discussions/d/events/{number:06d}.json": json.dumps(
            {"eventId": f"e-{number}", "sequence": number}
        ).encode()
        for number in sequences
    }


def test_a_discussion_whose_events_are_not_in_sequence_is_found() -> None:
    whole = stored(1, 2, 3)
    assert list(check_sequence(whole)) == []
    assert [it.kind for it in check_sequence(stored(1, 3))] == [ViolationKind.LOST]
    second = "discussions/d/events/000002.json"
    moved = whole | {second: b'{"eventId": "e-2", "sequence": 4}'}
    assert [it.kind for it in check_sequence(moved)] == [ViolationKind.REORDERED]
    doubled = whole | {second: b'{"eventId": "e-1", "sequence": 2}'}
    assert [it.kind for it in check_sequence(doubled)] == [ViolationKind.DUPLICATED]


SPOKEN = {"type": "SPEECH", "speaker": "ada", "content": "It pays."}
UNDISTURBED = Debate("one", [SPOKEN], [3], [])
FINISHED = DiscussionStatus(
    session_id="two", status="finished", tally=Tally(phase="decision", counts=TALLY)
)


def test_a_debate_that_differs_from_the_undisturbed_one_is_found() -> None:
    seen = replace(UNDISTURBED, session_id="two")
    assert list(check_debate(stored(1), FINISHED, seen, UNDISTURBED)) == []
    for wrong in (
        replace(seen, events=[]),
        replace(seen, events=[SPOKEN, SPOKEN]),
        replace(seen, turns=[4]),
        replace(seen, faults=["a key: altered"]),
    ):
        assert list(check_debate(stored(1), FINISHED, wrong, UNDISTURBED))


def test_a_debate_without_the_result_of_its_script_is_found() -> None:
    other = FINISHED.model_copy(update={"tally": Tally(phase="decision", counts={"yes": 1})})
    for result in (None, other):
        [violation] = check_debate(stored(1), result, UNDISTURBED, UNDISTURBED)
        assert violation.kind is ViolationKind.LOST
