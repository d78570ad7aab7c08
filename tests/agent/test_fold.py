"""A state is a fold of the log, whatever the log holds and however it is read."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from agent.evolve import evolve, fold
from agent.ranges import merged
from agent.spec import StuckThresholds
from agent.state import State
from events.digest import Digest
from events.entry import Entry
from events.projection import digest
from events.tools import ActionEvent
from events.usage import Usage
from storage.log import answered
from tests.builders import SPEC, configured, digests, opened, prompt
from tests.logs import CAREFUL, logs


def of(entries: Iterable[Entry]) -> list[Digest]:
    return [digest(entry) for entry in entries]


SPECS = [SPEC, CAREFUL, SPEC.model_copy(update={"stuck": StuckThresholds(window=2)})]

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
]
"""What can be in a log, by kind or, of a state update, by what it says; a newer writer's event has
a kind and nothing else that can be read."""


def fact(seq: int, which: str | dict[str, Any], fields: dict[str, Any]) -> Digest:
    told = {"kind": which} if isinstance(which, str) else {"kind": UPDATE, **which}
    blank = told["kind"] in ("RecallEvent", "SecurityAnalysisEvent", "Condensation", UPDATE)
    if blank and fields["newer"]:
        told = {"kind": told["kind"]}
    return Digest(seq=seq, fingerprint="f", **{**fields, **told})


UPDATE = "ConversationStateUpdateEvent"

details = st.fixed_dictionaries(
    {
        "source": st.sampled_from(["user", "agent", "environment"]),
        "size": st.integers(0, 9),
        "sha": st.sampled_from(["a", "b"]),
        "tool_name": st.sampled_from(["look", "finish"]),
        "action_id": st.sampled_from(["A", "B", "C"]),
        "llm_response_id": st.none() | st.sampled_from(["r", "s"]),
        "message_id": st.none() | st.sampled_from(["m", "n"]),
        "key": st.none() | st.sampled_from(["limits", "interrupted"]),
        "touches": st.none() | st.just(("file:a",)),
        "risk": st.none() | st.just("LOW"),
        "is_error": st.none() | st.just(True),
        "usage": st.none() | st.just(Usage(prompt_tokens=3, cost=0.5)),
        "newer": st.sampled_from([False, False, False, True]),
    }
)

facts = st.lists(st.tuples(st.sampled_from(KINDS), details), max_size=20).map(
    lambda made: [fact(seq, which, fields) for seq, (which, fields) in enumerate(made)]
)


@given(logs.map(of) | facts, st.data())
def test_a_log_folds_to_the_same_state_however_it_is_cut(
    log: list[Digest], data: st.DataObject
) -> None:
    whole = fold(State(), log)
    state = State()
    while state.next_seq < len(log):
        again = data.draw(st.integers(0, state.next_seq), label="from")
        upto = data.draw(st.integers(again, len(log)), label="to")
        state = fold(state, log[again : max(upto, state.next_seq + 1)])
    assert state == whole
    assert fold(whole, log) == whole


@given(facts)
def test_folding_takes_one_event_at_a_time(log: list[Digest]) -> None:
    state = State()
    for fact in log:
        state = evolve(state, fact)
    assert state == fold(State(), log)


def test_an_event_that_is_missing_is_missed() -> None:
    first, _, third = digests(opened(), configured(), prompt())
    with pytest.raises(ValueError, match="event 2 follows event 0: one is missing"):
        fold(State(), [first, third])


@given(logs.map(of) | facts)
def test_a_state_is_the_same_by_digests_that_have_travelled(log: list[Digest]) -> None:
    travelled = [Digest.model_validate_json(to_json(fact, exclude_none=True)) for fact in log]
    assert fold(State(), travelled) == fold(State(), log)


@given(logs.map(of) | facts)
def test_a_state_comes_back_as_it_was_sent(log: list[Digest]) -> None:
    state = fold(State(), log)
    assert State.model_validate_json(to_json(state, exclude_none=True)) == state
    assert State.model_validate_json(state.model_dump_json()) == state


@given(logs)
def test_what_is_pending_are_the_actions_without_an_answer(log: list[Entry]) -> None:
    answers = {answered(entry.event) for entry in log}
    runnable = [e for e in log if isinstance(e.event, ActionEvent) and e.event.action]
    open_ones = [entry.seq for entry in runnable if entry.event.id not in answers]
    assert [one.seq for one in fold(State(), of(log)).pending] == open_ones


@given(logs)
def test_every_answer_of_the_model_is_counted_and_paid_once(log: list[Entry]) -> None:
    state = fold(State(), of(log))
    bills = [entry.usage for entry in log if entry.usage]
    assert state.answers == len([bill for bill in bills if not bill.purpose])
    assert state.spent.cost == sum(bill.cost for bill in bills)
    assert state.spent.prompt_tokens == sum(bill.prompt_tokens for bill in bills)
    assert state.spent.completion_tokens == sum(bill.completion_tokens for bill in bills)


@given(logs.map(of) | facts)
def test_an_agent_that_runs_owes_somebody_an_answer(log: list[Digest]) -> None:
    state = State()
    for fact in log:
        state = evolve(state, fact)
        assert state.owes or state.status not in ("running", "waiting_for_confirmation")
        assert state.at_rest is (state.status != "running")
        assert (state.finish is None) or state.pending


@given(logs.map(of))
def test_a_reason_is_given_where_there_is_one(log: list[Digest]) -> None:
    state = State()
    for fact in log:
        state = evolve(state, fact)
        assert state.reason or state.status not in ("error", "stuck")
        assert not (state.reason and state.status in ("running", "finished"))


@given(logs.map(of) | facts)
def test_what_was_forgotten_is_in_order_and_no_count_is_below_zero(log: list[Digest]) -> None:
    state = State()
    for fact in log:
        state = evolve(state, fact)
        assert state.forgotten == merged((), state.forgotten)
        assert min(state.shown, state.tokens, state.overflows, state.iterations) >= 0
        assert len(set(state.skills)) == len(state.skills)


@given(logs.map(of) | facts)
def test_nothing_but_a_word_for_it_allows_an_action(log: list[Digest]) -> None:
    state, confirmed = State(), set[int]()
    for fact in log:
        state = evolve(state, fact)
        if fact.key == "confirmed" and fact.value:
            confirmed |= {seq for seq in fact.value if seq < fact.seq}
        assert all(one.seq in confirmed for one in state.pending if one.allowed)


@given(logs)
def test_a_closed_conversation_stays_closed(log: list[Entry]) -> None:
    state = State()
    for fact in of(log):
        closed = state.status == "closed"
        state = evolve(state, fact)
        assert not closed or state.status == "closed"


@given(logs, st.data())
def test_the_running_hash_knows_every_event_and_its_place(
    log: list[Entry], data: st.DataObject
) -> None:
    facts = of(log)
    place = data.draw(st.integers(0, len(facts) - 1))
    altered = facts[place].model_copy(update={"sha": "0" * 32})
    changed = [*facts[:place], altered, *facts[place + 1 :]]
    assert fold(State(), changed).sha != fold(State(), facts).sha
    assert fold(State(), facts[:-1]).sha != fold(State(), facts).sha
