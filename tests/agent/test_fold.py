"""A state is a fold of the log, whatever the log holds and however it is read."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from agent.state import State, evolve, fold
from events.digest import Digest
from events.entry import Entry
from events.projection import digest
from events.tools import ActionEvent
from events.usage import Usage
from storage.log import answered
from tests.builders import configured, digests, opened, prompt
from tests.logs import logs


def of(entries: Iterable[Entry]) -> list[Digest]:
    return [digest(entry) for entry in entries]


facts = st.lists(
    st.builds(
        Digest,
        seq=st.just(0),
        kind=st.sampled_from(
            [
                "MessageEvent",
                "ActionEvent",
                "ObservationEvent",
                "AgentErrorEvent",
                "UserRejectObservation",
                "PauseEvent",
                "StuckEvent",
                "ConversationErrorEvent",
                "SystemPromptEvent",
                "DreamEvent",
            ]
        ),
        source=st.sampled_from(["user", "agent", "environment"]),
        fingerprint=st.just("f"),
        size=st.integers(0, 9),
        sha=st.sampled_from(["a", "b"]),
        tool_name=st.sampled_from(["look", "finish"]),
        action_id=st.sampled_from(["A", "B", "C"]),
        llm_response_id=st.none() | st.sampled_from(["r", "s"]),
        message_id=st.none() | st.sampled_from(["m", "n"]),
        is_error=st.none() | st.just(True),
        usage=st.none() | st.just(Usage(prompt_tokens=3, cost=0.5)),
    ),
    max_size=20,
).map(lambda made: [one.model_copy(update={"seq": seq}) for seq, one in enumerate(made)])


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


@given(logs)
def test_a_state_comes_back_as_it_was_sent(log: list[Entry]) -> None:
    state = fold(State(), of(log))
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
    assert state.answers == len(bills)
    assert state.spent.cost == sum(bill.cost for bill in bills)
    assert state.spent.prompt_tokens == sum(bill.prompt_tokens for bill in bills)
    assert state.spent.completion_tokens == sum(bill.completion_tokens for bill in bills)


@given(logs)
def test_an_agent_that_runs_owes_somebody_an_answer(log: list[Entry]) -> None:
    state = State()
    for fact in of(log):
        state = evolve(state, fact)
        assert state.owes or state.status != "running"
        assert state.at_rest is (state.status != "running")
        assert (state.finish is None) or state.pending


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
