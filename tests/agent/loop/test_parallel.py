"""Actions of one response run in parallel unless they conflict."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.agent.loop.decide import decide
from perdure.agent.loop.state import State
from perdure.agent.loop.steps import Act, Delegate
from perdure.agent.spec import Agent
from perdure.events.tools import ActionEvent
from tests.builders import (
    SPEC,
    action,
    apply_events,
    id_of,
    observation,
    opened_state,
    rejection,
    user,
)

FIRST = 4
"""The slot of the first action."""


@dataclass(frozen=True)
class Call:
    """`look` and `finish` only read; what `write` does is known by what it `touches`."""

    name: str = "look"
    touches: tuple[str, ...] | None = None
    response: str = "response-1"


LOOK, WRITE = Call(), Call("write")


def write(*touches: str, response: str = "response-1") -> Call:
    return Call("write", touches, response)


def event(call: Call, nth: int) -> ActionEvent:
    return action(call.name, f"call_{nth}", call.response, touches=call.touches)


def with_calls(*calls: Call, spec: Agent = SPEC) -> State:
    return apply_events(
        opened_state(spec), user(), *(event(call, nth) for nth, call in enumerate(calls))
    )


def acting_seqs(state: State) -> list[int]:
    """Return the slots of the actions that run next."""
    steps = decide(state, ())
    return [step.action_seq for step in steps if isinstance(step, Act | Delegate)]


def count_parallel(*calls: Call, parallel: int = 8) -> int:
    """Count the calls that run first, in parallel."""
    slots = acting_seqs(with_calls(*calls, spec=SPEC.model_copy(update={"parallel": parallel})))
    assert slots == list(range(FIRST, FIRST + len(slots)))
    return len(slots)


def test_read_only_calls_run_in_parallel() -> None:
    assert count_parallel(LOOK, LOOK, Call("finish"), LOOK) == 4


def test_calls_with_different_resources_run_in_parallel() -> None:
    assert count_parallel(write("file:a"), write("file:b", "file:c"), write("file:d")) == 3
    assert count_parallel(write("file:a"), Call(touches=("file:b",))) == 2


def test_calls_with_a_common_resource_run_in_order() -> None:
    assert count_parallel(write("file:a"), write("file:b", "file:a")) == 1
    assert count_parallel(write("file:a"), Call(touches=("file:a",))) == 1
    assert count_parallel(Call(touches=("file:a",)), Call(touches=("file:a",))) == 2


def test_a_call_without_resources_conflicts_with_none() -> None:
    assert count_parallel(write(), write(), write("file:a")) == 3


@pytest.mark.parametrize("other", [WRITE, LOOK, write("file:a"), write()])
def test_a_call_with_unknown_resources_runs_alone(other: Call) -> None:
    assert count_parallel(WRITE, other) == 1
    assert count_parallel(other, WRITE) == 1


def test_the_order_of_the_calls_is_kept() -> None:
    state = with_calls(LOOK, LOOK, WRITE, LOOK, write("file:a"), write("file:b"), write("file:a"))
    done = []
    while slots := acting_seqs(state):
        done.append(slots)
        for slot in reversed(slots):
            state = apply_events(state, observation(id_of(slot)))
    assert done == [[4, 5], [6], [7], [8, 9], [10]]


def test_the_rest_of_a_batch_waits_for_all_running_calls() -> None:
    state = apply_events(with_calls(LOOK, LOOK, WRITE), observation(id_of(5)))
    assert acting_seqs(state) == [4]


@pytest.mark.parametrize(("parallel", "most"), [(3, 3), (1, 1), (0, 1), (-2, 1), (9, 5)])
def test_the_spec_limits_parallel_calls(parallel: int, most: int) -> None:
    assert count_parallel(*[LOOK] * 5, parallel=parallel) == most


def test_the_calls_of_one_response_run_before_those_of_the_next() -> None:
    later = [Call(response="response-2"), write("file:a", response="response-2")]
    assert count_parallel(LOOK, *later) == 1
    assert count_parallel(write("file:b"), *later) == 1


def test_rejected_actions_conflict_with_none() -> None:
    state = apply_events(with_calls(WRITE, LOOK, LOOK), rejection(id_of(4), "write"))
    assert acting_seqs(state) == [5, 6]


def test_delegated_actions_are_conversations_side_by_side() -> None:
    state = with_calls(Call("delegate", ()), Call("delegate", ()), LOOK)
    assert [step.kind for step in decide(state, ())] == ["agent.delegate"] * 2
    mixed = with_calls(Call("delegate", ("x",)), write("file:a"))
    assert [step.kind for step in decide(mixed, ())] == ["agent.delegate", "tool.call"]


touched = st.none() | st.lists(st.sampled_from("abc"), max_size=2, unique=True).map(tuple)
calls = st.builds(
    Call,
    name=st.sampled_from(["look", "write", "finish", "delegate"]),
    touches=touched,
    response=st.just("response-1"),
)


def conflicts(first: Call, second: Call) -> bool:
    """Restate the rule for conflicts independently of the code."""
    both_read = {first.name, second.name} <= {"look", "finish"}
    known = first.touches is not None and second.touches is not None
    apart = known and not {*(first.touches or ())} & {*(second.touches or ())}
    return not (both_read or apart)


@given(st.lists(calls, min_size=1, max_size=7), st.lists(calls, max_size=3), st.integers(0, 5))
@settings(max_examples=40)
def test_any_calls_run_in_order_and_never_beside_a_conflict(
    first_calls: list[Call], second_calls: list[Call], parallel: int
) -> None:
    batch = [*first_calls, *(Call(call.name, call.touches, "response-2") for call in second_calls)]
    state = with_calls(*batch, spec=SPEC.model_copy(update={"parallel": parallel}))
    expected = FIRST
    while state.pending:
        slots = acting_seqs(state)
        assert slots == list(range(expected, expected + len(slots)))
        chosen = [batch[slot - FIRST] for slot in slots]
        assert 1 <= len(chosen) <= max(1, parallel)
        assert len({call.response for call in chosen}) == 1
        assert not any(conflicts(a, b) for nth, a in enumerate(chosen) for b in chosen[nth + 1 :])
        expected += len(slots)
        if expected - FIRST < len(batch) and len(chosen) < max(1, parallel):
            left_out = batch[expected - FIRST]
            assert left_out.response != chosen[0].response or any(
                conflicts(left_out, call) for call in chosen
            ), "more could have been done"
        state = apply_events(state, *(observation(id_of(slot), "look") for slot in slots))
    assert expected == FIRST + len(batch)
