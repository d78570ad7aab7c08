"""OpenHands' socket sends entries and frames in the order that its client needs."""

import json
from typing import Any

import pytest

from perdure.agent.loop.evolve import fold
from perdure.agent.loop.state import State
from perdure.agent.policies import Confirmation
from perdure.agent.spec import Agent
from perdure.api.frames import DeltaFrame, NoticeFrame
from perdure.events.actions import TerminalAction
from perdure.events.control import (
    ConversationErrorEvent,
    ConversationStateUpdateEvent,
    InterruptEvent,
)
from perdure.events.event import AnyEvent
from perdure.events.projection import summarize
from perdure.gateway.openhands.info import Facts, execution_status
from perdure.gateway.openhands.record import least_record
from perdure.gateway.openhands.view import SocketView
from tests.builders import (
    CONVERSATION,
    ORIGIN,
    SPEC,
    TIMESTAMP,
    action,
    agent,
    entries,
    id_of,
    observation,
    opened_event,
    prompt,
    spec_event,
    user,
)

LATER = "2026-03-02T00:00:00.000000"
FACTS = Facts(CONVERSATION, least_record("m"), TIMESTAMP, TIMESTAMP)


def open_view(streams: bool = False, spec: Agent = SPEC) -> SocketView:
    begun = entries([opened_event(), spec_event(spec), prompt()])
    state = fold(State(), [summarize(entry) for entry in begun])
    return SocketView(state, FACTS, frozenset(), TIMESTAMP, streams)


def send(view: SocketView, *events: AnyEvent, is_new: bool = True) -> list[dict[str, Any]]:
    placed = entries(events, view.state.next_seq)
    texts = [text for entry in placed for text, _ in view.take_entry(entry, is_new)]
    return [json.loads(text) for text in texts]


def names(sent: list[dict[str, Any]]) -> list[str]:
    """Name each event by its kind, and an update of the state by its key and value."""
    return [
        f"{event['key']} {event['value'] if event['key'] == 'execution_status' else ''}".strip()
        if event["kind"] == "ConversationStateUpdateEvent"
        else event["kind"]
        for event in sent
    ]


def update(key: str, value: object) -> ConversationStateUpdateEvent:
    return ConversationStateUpdateEvent(timestamp=TIMESTAMP, source="user", key=key, value=value)


def test_a_run_ends_with_its_events_then_the_status_then_the_whole_state() -> None:
    sent = send(open_view(), user("Go."), agent("Done."))
    assert names(sent) == [
        "MessageEvent",
        "execution_status running",
        "MessageEvent",
        "execution_status finished",
        "full_state",
    ]
    assert sent[-1]["value"]["execution_status"] == "finished"


def test_a_message_that_is_only_recorded_ends_no_run() -> None:
    recorded = user("Later.").model_copy(update={"run": False})
    sent = send(open_view(), user("Go."), agent("Done."), recorded)
    assert names(sent)[-2:] == ["MessageEvent", "execution_status idle"]


def test_a_resumption_without_anything_to_do_is_a_run_that_has_ended() -> None:
    view = open_view()
    send(view, user("Go."), agent("Done."))
    assert names(send(view, update("status", "resumed"))) == ["status", "full_state"]


def test_what_was_interrupted_is_paused_until_the_next_message() -> None:
    view = open_view()
    stopped = InterruptEvent(timestamp=TIMESTAMP, source="user")
    sent = send(view, user("Go."), stopped)
    assert names(sent)[-3:] == ["InterruptEvent", "execution_status paused", "full_state"]
    recorded = user("And then.").model_copy(update={"run": False})
    assert names(send(view, recorded)) == ["MessageEvent", "execution_status idle"]


def test_a_suspension_is_told_before_its_state() -> None:
    stopped = InterruptEvent(
        timestamp=TIMESTAMP, source="environment", reason="too_many_conversations"
    )
    sent = send(open_view(), user("Go."), stopped)
    assert names(sent)[-4:] == [
        "InterruptEvent",
        "status_update",
        "execution_status paused",
        "full_state",
    ]
    assert sent[-3]["value"]["id"] == "AGENT_ERROR$TOO_MANY_CONVERSATIONS"
    assert not list(open_view().take_notice(NoticeFrame(**sent[-3]["value"]))), "told already"


def test_an_error_is_readable_before_the_status_says_so() -> None:
    failed = ConversationErrorEvent(timestamp=TIMESTAMP, code="max_budget", detail="Too dear.")
    sent = send(open_view(), user("Go."), failed)
    assert names(sent)[-3:] == ["ConversationErrorEvent", "execution_status error", "full_state"]
    assert sent[-3]["code"] == "MaxBudgetReached"


def test_what_a_client_had_missed_ends_no_run_again() -> None:
    sent = send(open_view(), user("Go."), agent("Done."), is_new=False)
    assert names(sent) == ["MessageEvent", "MessageEvent"]


def test_calls_that_wait_end_a_run() -> None:
    view = open_view(spec=SPEC.model_copy(update={"confirmation": Confirmation(policy="always")}))
    asked = update("status", "waiting_for_confirmation")
    sent = send(view, user("Go."), action(), asked)
    assert names(sent)[-3:] == ["status", "execution_status waiting_for_confirmation", "full_state"]


def test_a_changed_policy_is_told() -> None:
    changed = SPEC.model_copy(
        update={"confirmation": Confirmation(policy="always"), "tags": ("a=b",)}
    )
    sent = send(open_view(), update("spec", changed.model_dump(mode="json", exclude_none=True)))
    assert names(sent) == ["confirmation_policy", "tags", "max_iterations"]
    assert [event["value"] for event in sent[:2]] == [{"kind": "AlwaysConfirm"}, {"a": "b"}]


def test_a_change_of_the_state_is_the_environments_whoever_asked_for_it() -> None:
    resumed = update("status", "resumed").model_copy(update={"source": "user"})
    [shown] = [event for event in send(open_view(), resumed) if event["key"] == "status"]
    assert shown["source"] == "environment"


def test_no_event_is_older_than_the_one_before_it() -> None:
    view = open_view()
    late = user("Go.").model_copy(update={"timestamp": LATER})
    sent = send(view, late, agent("Done."))
    assert [event["timestamp"] for event in sent] == [LATER] * 5


def test_tools_are_those_of_mcp_unless_the_client_knows_them() -> None:
    view = open_view()
    call = action("terminal").model_copy(update={"action": TerminalAction(command="ls")})
    answer = observation(id_of(4)).model_copy(update={"tool_name": "terminal"})
    sent = send(view, user("Go."), call, answer)
    assert [sent[2]["action"]["kind"], sent[3]["observation"]["kind"]] == [
        "MCPToolAction",
        "MCPToolObservation",
    ]
    view = open_view()
    view.native = frozenset({"terminal"})
    assert send(view, user("Go."), call)[2]["action"]["kind"] == "TerminalAction"


def delta(text: str, offset: int = 0, attempt: int = 1) -> DeltaFrame:
    run, item = ORIGIN.run, ORIGIN.activity.partition(" ")[0]
    return DeltaFrame(
        item_id=item, run=run, step="llm.chat", attempt=attempt, order=0, offset=offset, text=text
    )


def said(view: SocketView, *frames: DeltaFrame) -> list[str]:
    texts = [text for frame in frames for text in view.take_delta(frame)]
    return [json.loads(text)["content"] for text in texts]


def test_words_that_are_sent_together_are_the_text() -> None:
    view = open_view(streams=True)
    send(view, user("Go."))
    pieces = said(view, delta("One "), delta("two ", 4), delta("One two thr"))
    sent = send(view, agent("One two three."))
    assert sent[0]["kind"] == "StreamingDeltaEvent"
    assert "".join([*pieces, sent[0]["content"]]) == "One two three."


def test_a_word_is_never_taken_back() -> None:
    view = open_view(streams=True)
    send(view, user("Go."))
    assert said(view, delta("One "), delta("Another", attempt=2)) == ["One "]
    assert names(send(view, agent("Another.")))[0] == "MessageEvent"


def test_words_are_for_those_who_ask_for_them() -> None:
    view = open_view()
    send(view, user("Go."))
    assert said(view, delta("One ")) == []


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [
        ("idle", None, "idle"),
        ("idle", "interrupted by the user", "paused"),
        ("closed", None, "finished"),
        ("stuck", "monologue", "stuck"),
    ],
)
def test_a_status_has_openhands_name(status: Any, reason: str | None, expected: str) -> None:
    assert execution_status(State(status=status, reason=reason)) == expected
