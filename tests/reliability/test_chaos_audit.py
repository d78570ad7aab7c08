"""The audit finds planted violations: an audit that finds none proves nothing by itself."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from examples.bfcl.objects import StoredEvent
from reliability.chaos.audit.log import (
    OUTCOME_UNKNOWN_TEXT,
    Acknowledgements,
    ViolationKind,
    audit,
    expected_files,
    find_newest_snapshot,
)
from reliability.chaos.tools import Effect


def event(seq: int, kind: str, **fields: Any) -> StoredEvent:
    origin = {"run": "r", "activity": str(seq), "position": 0}
    body = {"kind": kind, "origin": origin, **fields}
    return StoredEvent(f"events/{seq:06d}_{seq}.json", seq, f"id-{seq}", body)


def edit(command: str, **more: str) -> dict[str, Any]:
    return {"tool_name": "file_editor", "action": {"command": command, "path": "a", **more}}


DONE = {"observation": {"is_error": False}}

LOG = [
    event(0, "MessageEvent", message_id="anna-0"),
    event(1, "MessageEvent", message_id="anna-1"),
    event(2, "ActionEvent", tool_call_id="c1", tool_name="charge", action={}),
    event(3, "ObservationEvent", tool_call_id="c1", action_id="id-2", tool_name="charge", **DONE),
    event(4, "ActionEvent", tool_call_id="c2", **edit("create", file_text="one\n")),
    event(5, "ObservationEvent", tool_call_id="c2", action_id="id-4", tool_name="x", **DONE),
    event(
        6,
        "ActionEvent",
        tool_call_id="c3",
        **edit("str_replace", old_str="one", new_str="two"),
    ),
    event(
        7,
        "ObservationEvent",
        tool_call_id="c3",
        action_id="id-6",
        tool_name="x",
        files={"snapshot": "s"},
        **DONE,
    ),
]
ACCOUNT = Acknowledgements({"anna": ["anna-0", "anna-1"]}, {"anna-1": 1})
EFFECTS = [Effect("charge", "c", "id-2", 1)]


def test_a_complete_log_has_no_violations() -> None:
    assert list(audit(LOG, ACCOUNT, EFFECTS)) == []
    assert expected_files(LOG) == {"a": "two\n"}
    assert find_newest_snapshot(LOG) == "s"


def changed(seq: int, **fields: Any) -> list[StoredEvent]:
    log = list(LOG)
    log[seq] = replace(log[seq], fields={**log[seq].fields, **fields})
    return log


UNKNOWN = {"kind": "AgentErrorEvent", "classification": "outcome_unknown"}

HARMS: dict[str, tuple[Callable[[], list[StoredEvent]], set[ViolationKind]]] = {
    "nothing": (list, {ViolationKind.LOST}),
    "a gap": (lambda: [item for item in LOG if item.seq != 1], {ViolationKind.LOST}),
    "a slot twice": (lambda: [*LOG, LOG[0]], {ViolationKind.DUPLICATED}),
    "a message lost": (lambda: changed(0, message_id=None), {ViolationKind.LOST}),
    "a message twice": (
        lambda: [*LOG, event(8, "MessageEvent", message_id="anna-0")],
        {ViolationKind.DUPLICATED, ViolationKind.REORDERED},
    ),
    "an origin twice": (
        lambda: changed(1, origin=LOG[0].fields["origin"]),
        {ViolationKind.DUPLICATED},
    ),
    "messages out of order": (
        lambda: [
            *changed(0, message_id="anna-1")[:1],
            *changed(1, message_id="anna-0")[1:],
        ],
        {ViolationKind.REORDERED},
    ),
    "an answer lost": (lambda: LOG[:3], {ViolationKind.LOST}),
    "an answer twice": (
        lambda: [*LOG, event(8, tool_call_id="c1", action_id="id-2", **UNKNOWN)],
        {ViolationKind.DUPLICATED},
    ),
    "an effect that was not intended": (
        lambda: changed(2, kind="PauseEvent"),
        {ViolationKind.LOST},
    ),
    "an error": (lambda: changed(3, kind="AgentErrorEvent"), {ViolationKind.FAILED}),
    "files not kept": (lambda: changed(7, files={"fault": "full"}), {ViolationKind.FAILED}),
}


@pytest.mark.parametrize("name", HARMS)
def test_damage_to_a_log_is_found(name: str) -> None:
    harm, wrong = HARMS[name]
    assert {violation.kind for violation in audit(harm(), ACCOUNT, EFFECTS)} >= wrong


def test_an_effect_that_happened_twice_is_found() -> None:
    assert [violation.kind for violation in audit(LOG, ACCOUNT, EFFECTS * 2)] == [
        ViolationKind.TWICE
    ]


def test_a_missing_effect_is_found() -> None:
    assert [violation.kind for violation in audit(LOG, ACCOUNT, [])] == [ViolationKind.LOST]


def test_a_call_whose_outcome_is_unknown_may_or_may_not_have_had_its_effect() -> None:
    for classification in OUTCOME_UNKNOWN_TEXT:
        log = changed(3, kind="AgentErrorEvent", classification=classification)
        for effects in (EFFECTS, []):
            assert list(audit(log, ACCOUNT, effects)) == []
