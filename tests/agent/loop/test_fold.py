"""A state is a fold of the log, for any log in any portions."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from perdure.agent.loop.evolve import evolve, fold
from perdure.agent.loop.state import State
from perdure.agent.policies import StuckThresholds
from perdure.agent.spec import SummaryCondenser
from perdure.agent.view.seq_ranges import merge_ranges
from perdure.events.entry import Entry
from perdure.events.event import answered_action_id
from perdure.events.projection import summarize
from perdure.events.summary import EventSummary
from perdure.events.tools import ActionEvent
from perdure.events.usage import Usage
from tests.builders import SPEC, opened_event, prompt, spec_event, summaries_of
from tests.logs import RISKY_CONFIRMATION, logs


def summarize_all(entries: Iterable[Entry]) -> list[EventSummary]:
    return [summarize(entry) for entry in entries]


PINNED = SPEC.model_copy(update={"condenser": SummaryCondenser()})
"""An agent whose states stay the same when a default changes."""
SPECS = [
    PINNED,
    RISKY_CONFIRMATION.model_copy(update={"condenser": SummaryCondenser()}),
    PINNED.model_copy(update={"stuck": StuckThresholds(window=2)}),
]

KINDS: list[str | dict[str, Any]] = [
    *["MessageEvent", "ActionEvent", "ActionEvent", "ObservationEvent", "AgentErrorEvent"],
    *["UserRejectObservation", "SystemPromptEvent", "PauseEvent", "InterruptEvent", "DreamEvent"],
    *["StuckEvent", "ConversationErrorEvent", "CondensationRequest", "CondensationSummaryEvent"],
    {"kind": "RecallEvent", "value": ["a", "b"]},
    {"kind": "SecurityAnalysisEvent", "value": {"A": "HIGH", "B": "LOW"}},
    {"kind": "Condensation", "value": {"count": 2, "forgotten": [(1, 2)], "size": 3, "summary": 0}},
    {"kind": "Condensation", "value": {"count": 9, "forgotten": (), "size": 0, "summary": 4}},
    *({"key": "spec", "value": spec.model_dump(mode="json")} for spec in SPECS),
    *({"key": "status", "value": to} for to in ("resumed", "closed", "waiting_for_confirmation")),
    {"key": "opened", "value": {"run_id": "r"}},
    {"key": "confirmed", "value": [0, 2, 4, 6, 8]},
    {"key": "title", "value": "t"},
    {"key": "refused"},
    {"kind": "WaitEvent", "value": {"until": "2026-03-08T09:00:00.000000", "signal": "limits"}},
    {"kind": "QuestionEvent", "value": {"question": "Which?", "choices": ["red"]}},
    "SignalEvent",
    {"kind": "ObservationEvent", "key": "signal"},
]
"""What can be in a log, by kind or, of a state update, by what it says; a newer writer's event has
a kind and nothing else that can be read."""


def make_summary(seq: int, which: str | dict[str, Any], fields: dict[str, Any]) -> EventSummary:
    kind_fields = {"kind": which} if isinstance(which, str) else {"kind": UPDATE, **which}
    blank = kind_fields["kind"] in ("RecallEvent", "SecurityAnalysisEvent", "Condensation", UPDATE)
    if blank and fields["newer"]:
        kind_fields = {"kind": kind_fields["kind"]}
    return EventSummary(seq=seq, fingerprint="f", **{**fields, **kind_fields})


UPDATE = "ConversationStateUpdateEvent"

details = st.fixed_dictionaries(
    {
        "source": st.sampled_from(["user", "agent", "environment"]),
        "tokens": st.integers(0, 9),
        "sha": st.sampled_from(["a", "b"]),
        "tool_name": st.sampled_from(["look", "finish"]),
        "action_id": st.sampled_from(["A", "B", "C"]),
        "llm_response_id": st.none() | st.sampled_from(["r", "s"]),
        "message_id": st.none() | st.sampled_from(["m", "n"]),
        "key": st.none() | st.sampled_from(["limits", "interrupted"]),
        "resources": st.none() | st.just(("file:a",)),
        "risk": st.none() | st.just("LOW"),
        "is_error": st.none() | st.just(True),
        "usage": st.none() | st.just(Usage(prompt_tokens=3, cost=0.5)),
        "newer": st.sampled_from([False, False, False, True]),
    }
)

facts = st.lists(st.tuples(st.sampled_from(KINDS), details), max_size=20).map(
    lambda made: [make_summary(seq, which, fields) for seq, (which, fields) in enumerate(made)]
)


@given(logs.map(summarize_all) | facts, st.data())
def test_a_log_folds_to_the_same_state_however_it_is_cut(
    log: list[EventSummary], data: st.DataObject
) -> None:
    whole = fold(State(), log)
    state = State()
    while state.next_seq < len(log):
        again = data.draw(st.integers(0, state.next_seq), label="from")
        upto = data.draw(st.integers(again, len(log)), label="to")
        state = fold(state, log[again : max(upto, state.next_seq + 1)])
    assert state == whole
    assert fold(whole, log) == whole


def test_a_missing_event_raises() -> None:
    first, _, third = summaries_of(opened_event(), spec_event(), prompt())
    with pytest.raises(ValueError, match="event 2 follows event 0: one is missing"):
        fold(State(), [first, third])


@given(logs.map(summarize_all) | facts)
def test_serialized_summaries_fold_to_the_same_state(log: list[EventSummary]) -> None:
    travelled = [EventSummary.model_validate_json(to_json(fact, exclude_none=True)) for fact in log]
    assert fold(State(), travelled) == fold(State(), log)


@given(logs.map(summarize_all) | facts)
def test_a_state_survives_serialization(log: list[EventSummary]) -> None:
    state = fold(State(), log)
    assert State.model_validate_json(to_json(state, exclude_none=True)) == state
    assert State.model_validate_json(state.model_dump_json()) == state


@given(logs)
def test_the_actions_without_a_result_are_pending(log: list[Entry]) -> None:
    answers = {answered_action_id(entry.event) for entry in log}
    runnable = [e for e in log if isinstance(e.event, ActionEvent) and e.event.action]
    open_ones = [entry.seq for entry in runnable if entry.event.id not in answers]
    assert [item.seq for item in fold(State(), summarize_all(log)).pending] == open_ones


@given(logs)
def test_every_answer_of_the_model_is_counted_and_paid_once(log: list[Entry]) -> None:
    state = fold(State(), summarize_all(log))
    bills = [entry.usage for entry in log if entry.usage]
    assert state.response_count == len([bill for bill in bills if not bill.purpose])
    assert state.usage.cost == sum(bill.cost for bill in bills)
    assert state.usage.prompt_tokens == sum(bill.prompt_tokens for bill in bills)
    assert state.usage.completion_tokens == sum(bill.completion_tokens for bill in bills)


@given(logs.map(summarize_all) | facts)
def test_the_turn_of_a_running_agent_is_open(log: list[EventSummary]) -> None:
    state = State()
    for fact in log:
        state = evolve(state, fact)
        assert state.turn_open or state.status not in ("running", "waiting_for_confirmation")
        assert state.at_rest is (state.status != "running")
        assert (state.finish_call_seq is None) or state.pending


@given(logs.map(summarize_all))
def test_a_reason_is_given_where_there_is_one(log: list[EventSummary]) -> None:
    state = State()
    for fact in log:
        state = evolve(state, fact)
        assert state.reason or state.status not in ("error", "stuck")
        assert not (state.reason and state.status in ("running", "finished"))


@given(logs.map(summarize_all) | facts)
def test_forgotten_ranges_are_sorted_and_no_count_is_negative(log: list[EventSummary]) -> None:
    state = State()
    for fact in log:
        state = evolve(state, fact)
        assert state.forgotten_seqs == merge_ranges((), state.forgotten_seqs)
        assert min(state.view_events, state.view_tokens, state.overflows, state.iterations) >= 0
        assert len(set(state.shown_skills)) == len(state.shown_skills)


@given(logs.map(summarize_all) | facts)
def test_only_a_confirmation_approves_an_action(log: list[EventSummary]) -> None:
    state, confirmed = State(), set[int]()
    for fact in log:
        state = evolve(state, fact)
        if fact.key == "confirmed" and fact.value:
            confirmed |= {seq for seq in fact.value if seq < fact.seq}
        assert all(item.seq in confirmed for item in state.pending if item.approved)


@given(logs)
def test_a_closed_conversation_stays_closed(log: list[Entry]) -> None:
    state = State()
    for fact in summarize_all(log):
        closed = state.status == "closed"
        state = evolve(state, fact)
        assert not closed or state.status == "closed"


@given(logs, st.data())
def test_the_running_hash_knows_every_event_and_its_place(
    log: list[Entry], data: st.DataObject
) -> None:
    facts = summarize_all(log)
    place = data.draw(st.integers(0, len(facts) - 1))
    altered = facts[place].model_copy(update={"sha": "0" * 32})
    changed = [*facts[:place], altered, *facts[place + 1 :]]
    assert fold(State(), changed).sha != fold(State(), facts).sha
    assert fold(State(), facts[:-1]).sha != fold(State(), facts).sha
