"""Turns as runs of AG-UI: tables of parts, and the events that follow from them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agent.loop.start import PendingCall
from perdure.agent.loop.status import TRUNCATED_REASON, Status
from perdure.events.usage import Usage
from perdure.gateway.ag_ui.events import Event
from perdure.gateway.ag_ui.ids import MessageIds
from perdure.gateway.ag_ui.run import RunHead, RunProjection
from perdure.gateway.turns.parts import (
    Asked,
    Called,
    Condensed,
    Ended,
    Failed,
    Part,
    Reasoning,
    Returned,
    Text,
)
from tests.gateway.ag_ui.judges import judge
from tests.gateway.ag_ui.stage import find, kinds

HEAD = RunHead("thread", "run", "00000000-0000-4000-8000-000000000000", "coder", "gpt")
IDS = MessageIds(HEAD.conversation_id)

SAID = [Text("a", "It "), Text("a", "is 5.", last=True, final=True, whole="It is 5.")]
THOUGHT = Reasoning("a", "Hm.")
CALLED = Called("a", "c", "add", '{"a":1}')
OTHER = Called("a", "d", "sub", "")
RETURNED = Returned("c", "add", "5")
FAILED = Returned("c", "add", "No.", is_error=True)
MAY_WAIT = Called("a", "c", "add", '{"a":1}', "possible")
APPROVED = Called("a", "c", "add", '{"a":1}', "answered")
ASKED = Asked((PendingCall(seq=5, tool_name="add", tool_call_id="c", risk="HIGH", asks=True),))
HANDED = Called("a", "c", "delegate", '{"task":"Count.","agent":"counter"}')
MAY_HAND = Called("a", "c", "delegate", '{"task":"Count."}', "possible")

STEP, LEFT = "STEP_STARTED", "STEP_FINISHED"
BEGUN, DELTA, ENDED = ["RUN_STARTED", "STATE_SNAPSHOT"], "STATE_DELTA", "RUN_FINISHED"
WORDS = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
HELLO = [WORDS[0], WORDS[1], WORDS[1], WORDS[2]]
THINK = [
    *("REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT"),
    *("REASONING_MESSAGE_END", "REASONING_END"),
]
CALL, RESULT = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"], "TOOL_CALL_RESULT"


def end(status: Status = "finished", reason: str | None = None) -> Ended:
    return Ended(status, reason, Usage(prompt_tokens=7, completion_tokens=3), 9)


STREAMS: dict[str, tuple[list[Part], list[str], str]] = {
    "words": ([*SAID, end()], [STEP, *HELLO, LEFT, DELTA, ENDED], "success"),
    "reasoning": (
        [*SAID, THOUGHT, end()],
        [STEP, *HELLO, *THINK, LEFT, DELTA, ENDED],
        "success",
    ),
    "a call": (
        [CALLED, RETURNED, end()],
        [STEP, *CALL, RESULT, LEFT, DELTA, ENDED],
        "success",
    ),
    "words after a call": (
        [CALLED, RETURNED, Text("b", "5.", last=True, final=True, whole="5."), end()],
        [STEP, *CALL, RESULT, LEFT, STEP, *WORDS, LEFT, DELTA, ENDED],
        "success",
    ),
    "calls side by side": (
        [CALLED, OTHER, Returned("d", "sub", "3"), RETURNED, end()],
        [STEP, *CALL, CALL[0], CALL[2], RESULT, RESULT, LEFT, DELTA, ENDED],
        "success",
    ),
    "a call without a result": (
        [CALLED, end("idle", "interrupted by the user")],
        [STEP, *CALL, LEFT, DELTA, ENDED],
        "cancelled",
    ),
    "a call that waits": (
        [MAY_WAIT, ASKED, end("waiting_for_confirmation")],
        [STEP, *CALL, LEFT, DELTA, ENDED],
        "interrupt",
    ),
    "a call that a person has approved": (
        [APPROVED, RETURNED, end()],
        [RESULT, DELTA, ENDED],
        "success",
    ),
    "a task for another agent": (
        [HANDED, RETURNED, end()],
        [
            *(STEP, *CALL, "SUBAGENT_STARTED", "SUBAGENT_FINISHED", RESULT, LEFT),
            *(DELTA, ENDED),
        ],
        "success",
    ),
    "a task that fails": (
        [HANDED, FAILED, end()],
        [STEP, *CALL, "SUBAGENT_STARTED", "SUBAGENT_ERROR", RESULT, LEFT, DELTA, ENDED],
        "success",
    ),
    "a task that waits": (
        [MAY_HAND, ASKED, end("waiting_for_confirmation")],
        [STEP, *CALL, "SUBAGENT_STARTED", "SUBAGENT_FINISHED", LEFT, DELTA, ENDED],
        "interrupt",
    ),
    "a task that was stopped": (
        [HANDED, end("idle", "interrupted by the user")],
        [STEP, *CALL, "SUBAGENT_STARTED", "SUBAGENT_ERROR", LEFT, DELTA, ENDED],
        "cancelled",
    ),
    "a condensation": ([Condensed("a", 7, "Sums."), end()], ["CUSTOM", DELTA, ENDED], "success"),
    "a failure": ([Failed("auth", "No key."), end("error")], [DELTA, "RUN_ERROR"], ""),
    "an end with an error": ([end("stuck", "in circles")], [DELTA, "RUN_ERROR"], ""),
    "an answer that was cut off": ([end(reason=TRUNCATED_REASON)], [DELTA, ENDED], "success"),
    "a pause": ([end("paused")], [DELTA, ENDED], "cancelled"),
    "nothing": ([end("idle")], [DELTA, ENDED], "success"),
    "words that nothing follows": (
        [Text("a", "It "), Failed("auth", "No key."), end("error")],
        [STEP, *WORDS, LEFT, DELTA, "RUN_ERROR"],
        "",
    ),
    "a text that grew in vain": (
        [Text("a", "It "), Text("a", "", last=True, whole="It "), end("idle")],
        [STEP, *WORDS, LEFT, DELTA, ENDED],
        "success",
    ),
}


def project(parts: list[Part], head: RunHead = HEAD, **more: Any) -> list[Event]:
    projection = RunProjection(head)
    events = [*projection.begin(**more), *(it for part in parts for it in projection.take(part))]
    assert projection.is_over
    return events


@pytest.mark.parametrize("name", STREAMS)
def test_the_events_of_a_run_follow_from_the_parts(name: str) -> None:
    parts, expected, outcome = STREAMS[name]
    events = project(parts)
    assert kinds(events) == [*BEGUN, *expected]
    assert events[-1].get("outcome", {}).get("type", "") == outcome


@pytest.mark.parametrize("name", STREAMS)
def test_a_run_is_what_the_validator_and_the_protocols_types_take(name: str) -> None:
    parts = STREAMS[name][0]
    before: list[dict[str, Any]] = []
    if APPROVED in parts:
        function = {"name": "add", "arguments": "{}"}
        call = {"id": "c", "type": "function", "function": function}
        before = [{"id": IDS.text("a"), "role": "assistant", "toolCalls": [call]}]
    judge(project(parts, messages=before))


ITEMS = st.sampled_from(["a", "b", "c"])
CALLS = st.sampled_from(["c", "d", "e"])
TOOLS = st.sampled_from(["add", "delegate"])
PARTS: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, ITEMS, st.sampled_from(["", "so "]), last=st.booleans()),
    st.builds(Reasoning, ITEMS, st.just("Hm.")),
    st.builds(Called, ITEMS, CALLS, TOOLS, st.sampled_from(["", "{}", '{"task":"x"}'])),
    st.builds(Condensed, ITEMS, st.integers(0, 9), st.sampled_from([None, "Sums."])),
    st.builds(Failed, st.just("auth"), st.just("No key.")),
)


@given(st.lists(PARTS, max_size=12), st.sampled_from(["finished", "error", "idle", "paused"]))
def test_whatever_comes_nothing_is_open_twice_or_at_the_end(
    parts: list[Part], status: Status
) -> None:
    judge(project([*parts, end(status)], messages=[]))
    cut = RunProjection(HEAD)
    events = [*cut.begin(), *(it for part in parts for it in cut.take(part))]
    judge([*events, *cut.fail("store_unavailable", "Ask again.")])


@given(st.lists(PARTS, max_size=12))
def test_a_result_names_the_call_that_the_client_knows(parts: list[Part]) -> None:
    results: list[Part] = [
        Returned(part.call_id, part.tool_name, "5") for part in parts if isinstance(part, Called)
    ]
    events = project([*parts, *results, end()])
    judge(events)
    called = {event["toolCallId"] for event in find(events, "TOOL_CALL_START")}
    assert {event["toolCallId"] for event in find(events, "TOOL_CALL_RESULT")} <= called


def test_ids_and_texts_are_those_of_the_step() -> None:
    events = project([*SAID, THOUGHT, CALLED, RETURNED, end()])
    [started] = find(events, "TEXT_MESSAGE_START")
    [called] = find(events, "TOOL_CALL_START")
    [result] = find(events, "TOOL_CALL_RESULT")
    assert started["messageId"] == called["parentMessageId"] == IDS.text("a")
    assert (called["toolCallId"], called["toolCallName"]) == ("c", "add")
    assert result["messageId"] == IDS.result("a", "c")
    assert (result["toolCallId"], result["content"], result["role"]) == ("c", "5", "tool")
    assert [it["delta"] for it in find(events, "TEXT_MESSAGE_CONTENT")] == ["It ", "is 5."]
    names = {it["messageId"] for it in events if it["type"].startswith("REASONING")}
    assert names == {IDS.reasoning("a")}


def test_a_run_names_its_thread_and_tells_its_state_and_its_usage() -> None:
    events = project(
        [*SAID, end(reason="why")],
        RunHead(**{**vars(HEAD), "client_state": {"x": 1}, "parent_run_id": "before"}),
    )
    assert events[0] == {
        "type": "RUN_STARTED",
        "threadId": "thread",
        "runId": "run",
        "protocolVersion": "1.0",
        "parentRunId": "before",
    }
    assert events[1]["snapshot"] == {
        "x": 1,
        "status": "running",
        "conversationId": HEAD.conversation_id,
        "agent": "coder",
    }
    assert find(events, "STATE_DELTA")[0]["delta"] == [
        {"op": "replace", "path": "/status", "value": "finished"},
        {"op": "add", "path": "/reason", "value": "why"},
    ]
    assert events[-1] == {
        "type": "RUN_FINISHED",
        "threadId": "thread",
        "runId": "run",
        "outcome": {"type": "success"},
        "usage": [{"model": "gpt", "inputTokens": 7, "outputTokens": 3, "totalTokens": 10}],
    }


def test_an_interrupt_says_what_waits_and_what_answers_it() -> None:
    events = project([MAY_WAIT, ASKED, end("waiting_for_confirmation")])
    [interrupt] = events[-1]["outcome"]["interrupts"]
    schema = interrupt.pop("responseSchema")
    assert interrupt == {
        "id": "c",
        "reason": "tool_call",
        "toolCallId": "c",
        "message": 'May add be called? {"a":1}',
        "metadata": {"toolName": "add", "risk": "HIGH"},
    }
    assert (schema["required"], [*schema["properties"]]) == (["approved"], ["approved", "reason"])


def test_a_failed_run_has_its_code_and_what_it_has_cost() -> None:
    error = project([Failed("auth", "No key."), end("error")])[-1]
    assert (error["message"], error["code"]) == ("No key.", "auth")
    assert error["usage"][0]["totalTokens"] == 10


def test_a_sub_agent_has_the_name_and_the_task_of_its_call() -> None:
    events = project([HANDED, RETURNED, end()])
    [started], [ended] = find(events, "SUBAGENT_STARTED"), find(events, "SUBAGENT_FINISHED")
    assert (started["name"], started["description"]) == ("counter", "Count.")
    assert (started["parentToolCallId"], ended["result"]) == ("c", "5")
    waited = project([MAY_HAND, ASKED, end("waiting_for_confirmation")])
    [ended] = find(waited, "SUBAGENT_FINISHED")
    assert ended["outcome"] == {"type": "suspended", "interruptIds": ["c"]}


def test_reasoning_that_the_client_keeps_is_not_told_again() -> None:
    head = RunHead(**{**vars(HEAD), "told": frozenset({IDS.reasoning("a")})})
    assert find(project([THOUGHT, end()], head), "REASONING_START") == []
