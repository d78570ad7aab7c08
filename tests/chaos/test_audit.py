"""The audit sees what it is there to see: an audit that finds nothing proves nothing by itself."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from examples.bfcl.objects import Stored
from tests.chaos.audit import TOLD, Account, Wrong, audit, due_files, newest_snapshot
from tests.chaos.tools import Effect


def event(seq: int, kind: str, **fields: Any) -> Stored:
    origin = {"run": "r", "activity": str(seq), "position": 0}
    body = {"kind": kind, "origin": origin, **fields}
    return Stored(f"events/{seq:06d}_{seq}.json", seq, f"id-{seq}", body)


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
ACCOUNT = Account({"anna": ["anna-0", "anna-1"]}, {"anna-1": 1})
EFFECTS = [Effect("charge", "c", "id-2", 1)]


def test_a_whole_log_is_whole() -> None:
    assert list(audit(LOG, ACCOUNT, EFFECTS)) == []
    assert due_files(LOG) == {"a": "two\n"}
    assert newest_snapshot(LOG) == "s"


def changed(seq: int, **fields: Any) -> list[Stored]:
    log = list(LOG)
    log[seq] = replace(log[seq], fields={**log[seq].fields, **fields})
    return log


UNKNOWN = {"kind": "AgentErrorEvent", "classification": "outcome_unknown"}

HARMS: dict[str, tuple[Callable[[], list[Stored]], set[Wrong]]] = {
    "nothing": (list, {Wrong.LOST}),
    "a gap": (lambda: [one for one in LOG if one.seq != 1], {Wrong.LOST}),
    "a slot twice": (lambda: [*LOG, LOG[0]], {Wrong.DUPLICATED}),
    "a message lost": (lambda: changed(0, message_id=None), {Wrong.LOST}),
    "a message twice": (
        lambda: [*LOG, event(8, "MessageEvent", message_id="anna-0")],
        {Wrong.DUPLICATED, Wrong.REORDERED},
    ),
    "an origin twice": (
        lambda: changed(1, origin=LOG[0].fields["origin"]),
        {Wrong.DUPLICATED},
    ),
    "messages out of order": (
        lambda: [
            *changed(0, message_id="anna-1")[:1],
            *changed(1, message_id="anna-0")[1:],
        ],
        {Wrong.REORDERED},
    ),
    "an answer lost": (lambda: LOG[:3], {Wrong.LOST}),
    "an answer twice": (
        lambda: [*LOG, event(8, tool_call_id="c1", action_id="id-2", **UNKNOWN)],
        {Wrong.DUPLICATED},
    ),
    "an effect that was not intended": (
        lambda: changed(2, kind="PauseEvent"),
        {Wrong.LOST},
    ),
    "an error": (lambda: changed(3, kind="AgentErrorEvent"), {Wrong.FAILED}),
    "files not kept": (lambda: changed(7, files={"fault": "full"}), {Wrong.FAILED}),
}


@pytest.mark.parametrize("name", HARMS)
def test_harm_to_the_log_is_seen(name: str) -> None:
    harm, wrong = HARMS[name]
    assert {found.wrong for found in audit(harm(), ACCOUNT, EFFECTS)} >= wrong


def test_what_was_done_twice_is_seen() -> None:
    assert [found.wrong for found in audit(LOG, ACCOUNT, EFFECTS * 2)] == [Wrong.TWICE]


def test_an_effect_that_is_missing_is_seen() -> None:
    assert [found.wrong for found in audit(LOG, ACCOUNT, [])] == [Wrong.LOST]


def test_a_call_whose_outcome_is_unknown_may_or_may_not_have_had_its_effect() -> None:
    for told in TOLD:
        log = changed(3, kind="AgentErrorEvent", classification=told)
        for effects in (EFFECTS, []):
            assert list(audit(log, ACCOUNT, effects)) == []
