"""Turns as updates of a session: tables of parts, and what follows from them."""

import json
from typing import Any

import pytest
from acp import schema
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from perdure.acp.modes import MODES, find_mode, list_modes, read_mode
from perdure.acp.projection import (
    Projection,
    find_stop_reason,
    format_usage,
    make_usage_update,
)
from perdure.agent.loop.phase import SUSPENDED_REASON
from perdure.agent.loop.status import TRUNCATED_REASON, Status
from perdure.agent.policies import Confirmation
from perdure.errors import Invalid
from perdure.events.usage import Usage
from perdure.gateway.turns.parts import (
    Approval,
    Called,
    Ended,
    Failed,
    Part,
    Reasoning,
    Returned,
    Text,
)
from tests.acp.judge import Judge

UPDATE: TypeAdapter[schema.SessionNotification] = TypeAdapter(schema.SessionNotification)


def call(name: str, approval: Approval = "none", **arguments: Any) -> Called:
    return Called("a", "c", name, json.dumps(arguments), approval)


def end(status: Status = "finished", reason: str | None = None) -> Ended:
    return Ended(status, reason, Usage(), 9)


def project(*parts: Part) -> list[dict[str, Any]]:
    projection = Projection("/work")
    updates = [update for part in parts for update in projection.take(part)]
    for update in updates:
        UPDATE.validate_python({"sessionId": "s", "update": update})
    return updates


def outline(updates: list[dict[str, Any]]) -> list[str]:
    """Return a line for each update: its kind, and its text or its status."""
    lines = []
    for update in updates:
        content = update.get("content")
        said = content["text"] if isinstance(content, dict) else update.get("status", "")
        lines.append(f"{update['sessionUpdate']} {said}".strip())
    return lines


ADD = call("add", a=1)
MAY_WAIT = call("add", "possible", a=1)
APPROVED = call("add", "answered", a=1)
RETURNED = Returned("c", "add", "5")
FAILED = Returned("c", "add", "No.", is_error=True)
TASKS = [{"title": "Add.", "notes": "", "status": "done"}, {"title": "Say."}, "odd"]

TURNS: dict[str, tuple[list[Part], list[str]]] = {
    "words": (
        [Text("a", "It "), Text("a", "is 5.", last=True, final=True, whole="It is 5."), end()],
        ["agent_message_chunk It", "agent_message_chunk is 5."],
    ),
    "an empty piece": ([Text("a", "", last=True, whole="It"), end()], []),
    "two messages are two paragraphs": (
        [Text("a", "I add."), Text("b", "It is 5."), end()],
        ["agent_message_chunk I add.", "agent_message_chunk \n\nIt is 5."],
    ),
    "a message after a thought begins anew": (
        [Text("a", "I add."), Reasoning("a", "Hm."), Text("b", "5."), end()],
        ["agent_message_chunk I add.", "agent_thought_chunk Hm.", "agent_message_chunk 5."],
    ),
    "turns are apart": (
        [Text("a", "One."), end(), Text("b", "Two."), end()],
        ["agent_message_chunk One.", "agent_message_chunk Two."],
    ),
    "a call": (
        [ADD, RETURNED, end()],
        ["tool_call pending", "tool_call_update in_progress", "tool_call_update completed"],
    ),
    "a call that fails": (
        [ADD, FAILED, end()],
        ["tool_call pending", "tool_call_update in_progress", "tool_call_update failed"],
    ),
    "a call that may wait, and does not": (
        [MAY_WAIT, RETURNED, end()],
        ["tool_call pending", "tool_call_update completed"],
    ),
    "a call that waits": ([MAY_WAIT, end("waiting_for_confirmation")], ["tool_call pending"]),
    "a call that waited": (
        [MAY_WAIT, end("waiting_for_confirmation"), APPROVED, RETURNED, end()],
        ["tool_call pending", "tool_call_update in_progress", "tool_call_update completed"],
    ),
    "a result of a call that was not told of": (
        [RETURNED, end()],
        ["tool_call pending", "tool_call_update completed"],
    ),
    "a second result": (
        [ADD, RETURNED, FAILED, end()],
        ["tool_call pending", "tool_call_update in_progress", "tool_call_update completed"],
    ),
    "a plan": (
        [
            call("task_tracker", command="plan", task_list=TASKS),
            Returned("c", "task_tracker", "Done."),
        ],
        ["tool_call pending", "tool_call_update in_progress", "tool_call_update completed", "plan"],
    ),
    "a plan that is only looked at": (
        [call("task_tracker", command="view"), Returned("c", "task_tracker", "None.")],
        ["tool_call pending", "tool_call_update in_progress", "tool_call_update completed"],
    ),
    "a plan that is refused": (
        [
            call("task_tracker", command="plan", task_list=TASKS),
            Returned("c", "task_tracker", "No.", is_error=True),
        ],
        ["tool_call pending", "tool_call_update in_progress", "tool_call_update failed"],
    ),
    "a failure": ([Failed("stuck", "It repeats itself."), end("stuck")], []),
}


@pytest.mark.parametrize("name", TURNS)
def test_the_updates_of_a_session_follow_from_the_parts(name: str) -> None:
    parts, expected = TURNS[name]
    assert [line.rstrip() for line in outline(project(*parts))] == expected


def test_a_plan_has_the_tasks_in_the_words_of_the_protocol() -> None:
    plan = project(*TURNS["a plan"][0])[-1]
    assert plan["entries"] == [
        {"content": "Add.", "priority": "medium", "status": "completed"},
        {"content": "Say.", "priority": "medium", "status": "pending"},
    ]


STOPS: dict[str, tuple[Ended, Failed | None, str | None]] = {
    "an answer": (end(), None, "end_turn"),
    "an answer that was cut off": (end(reason=TRUNCATED_REASON), None, "max_tokens"),
    "an interrupt": (end("idle"), None, "cancelled"),
    "a pause": (end("paused"), None, "cancelled"),
    "closed": (end("closed"), None, "cancelled"),
    "a limit": (end("error"), Failed("max_iterations", "…"), "max_turn_requests"),
    "no more money": (end("error"), Failed("max_budget", "…"), "max_turn_requests"),
    "no more tokens": (end("error"), Failed("max_tokens", "…"), "max_tokens"),
    "too many at once": (end("idle", SUSPENDED_REASON), None, "max_turn_requests"),
    "a failure": (end("error"), Failed("rate_limit", "…"), None),
    "stuck": (end("stuck"), Failed("stuck", "…"), None),
}


@pytest.mark.parametrize("name", STOPS)
def test_the_reason_to_stop_follows_from_the_end(name: str) -> None:
    ended, failed, reason = STOPS[name]
    assert find_stop_reason(ended, failed, was_refused=False) == reason


def test_a_task_that_the_agent_has_refused_is_a_refusal() -> None:
    assert find_stop_reason(end(), None, was_refused=True) == "refusal"


def test_usage_has_what_there_is() -> None:
    usage = Usage(prompt_tokens=7, completion_tokens=3, cached_tokens=2)
    assert format_usage(usage) == {
        "inputTokens": 7,
        "outputTokens": 3,
        "totalTokens": 10,
        "cachedReadTokens": 2,
    }
    assert make_usage_update(10, None, usage) is None
    priced = make_usage_update(10, 100, Usage(cost=0.5))
    assert priced == {
        "sessionUpdate": "usage_update",
        "used": 10,
        "size": 100,
        "cost": {"amount": 0.5, "currency": "USD"},
    }
    unpriced = make_usage_update(10, 100, Usage(unpriced_tokens=3))
    assert unpriced is not None
    assert "cost" not in unpriced


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_is_a_policy_and_back(mode: str) -> None:
    strict = Confirmation(policy="always", threshold="LOW")
    changed = read_mode(mode, strict)
    assert (find_mode(changed), changed.threshold) == (mode, "LOW")
    modes = schema.SessionModeState.model_validate(list_modes(mode))
    assert modes.current_mode_id in [each.id for each in modes.available_modes]


def test_a_mode_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(Invalid, match="'odd'") as refused:
        read_mode("odd", None)
    assert refused.value.hint == "Use ask, risky, auto."
    assert find_mode(None) == "auto"


names = st.sampled_from(["terminal", "file_editor", "task_tracker", "add"])
ids = st.sampled_from(["c", "d", "e"])
texts = st.text(max_size=5)
arguments = st.one_of(
    texts,
    st.dictionaries(
        st.sampled_from(["command", "path", "file_text", "new_str", "task_list"]),
        st.one_of(st.none(), texts, st.integers(), st.lists(texts, max_size=2)),
    ).map(json.dumps),
)
approvals: st.SearchStrategy[Approval] = st.sampled_from(["none", "possible", "answered"])
parts = st.one_of(
    st.builds(Text, ids, texts),
    st.builds(Reasoning, ids, texts),
    st.builds(Called, ids, ids, names, arguments, approvals),
)


@given(st.lists(parts, max_size=12), st.booleans())
def test_whatever_the_parts_the_updates_keep_to_the_protocol(
    turn: list[Part], is_error: bool
) -> None:
    judge = Judge()
    judge.hear(b'{"id":1,"method":"session/prompt","params":{"sessionId":"s"}}')
    calls = {part.call_id: part for part in turn if isinstance(part, Called)}
    returned = [Returned(name, each.tool_name, "x", is_error) for name, each in calls.items()]
    for update in project(*turn, *returned):
        line = {"jsonrpc": "2.0", "method": "session/update"}
        params = {"sessionId": "s", "update": update}
        judge.judge(json.dumps({**line, "params": params}).encode() + b"\n")
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "end_turn"}}
    judge.judge(json.dumps(answer).encode() + b"\n")
    assert judge.deviations == []
