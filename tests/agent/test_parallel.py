"""Actions of one answer are done side by side where none can get in another's way."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.decide import decide
from agent.spec import Spec
from agent.state import State
from agent.steps import Act, Delegate
from events.tools import ActionEvent
from tests.builders import SPEC, action, after, id_of, observation, opening, rejection, user

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


def wanting(*calls: Call, spec: Spec = SPEC) -> State:
    return after(opening(spec), user(), *(event(call, nth) for nth, call in enumerate(calls)))


def acting(state: State) -> list[int]:
    """The slots of the actions that are done next."""
    steps = decide(state, ())
    return [step.action for step in steps if isinstance(step, Act | Delegate)]


def together(*calls: Call, parallel: int = 8) -> int:
    """How many of the calls are done first, side by side."""
    slots = acting(wanting(*calls, spec=SPEC.model_copy(update={"parallel": parallel})))
    assert slots == list(range(FIRST, FIRST + len(slots)))
    return len(slots)


def test_what_only_reads_is_done_together() -> None:
    assert together(LOOK, LOOK, Call("finish"), LOOK) == 4


def test_who_touches_different_things_does_so_together() -> None:
    assert together(write("file:a"), write("file:b", "file:c"), write("file:d")) == 3
    assert together(write("file:a"), Call(touches=("file:b",))) == 2


def test_who_touches_the_same_thing_waits_for_the_other() -> None:
    assert together(write("file:a"), write("file:b", "file:a")) == 1
    assert together(write("file:a"), Call(touches=("file:a",))) == 1
    assert together(Call(touches=("file:a",)), Call(touches=("file:a",))) == 2


def test_what_touches_nothing_is_in_nobodys_way() -> None:
    assert together(write(), write(), write("file:a")) == 3


@pytest.mark.parametrize("other", [WRITE, LOOK, write("file:a"), write()])
def test_what_touches_nobody_knows_what_is_done_alone(other: Call) -> None:
    assert together(WRITE, other) == 1
    assert together(other, WRITE) == 1


def test_the_order_of_the_calls_is_kept() -> None:
    state = wanting(LOOK, LOOK, WRITE, LOOK, write("file:a"), write("file:b"), write("file:a"))
    done = []
    while slots := acting(state):
        done.append(slots)
        for slot in reversed(slots):
            state = after(state, observation(id_of(slot)))
    assert done == [[4, 5], [6], [7], [8, 9], [10]]


def test_the_others_of_a_batch_wait_until_all_that_were_begun_are_done() -> None:
    state = after(wanting(LOOK, LOOK, WRITE), observation(id_of(5)))
    assert acting(state) == [4]


@pytest.mark.parametrize(("parallel", "most"), [(3, 3), (1, 1), (0, 1), (-2, 1), (9, 5)])
def test_no_more_are_done_together_than_the_spec_allows(parallel: int, most: int) -> None:
    assert together(*[LOOK] * 5, parallel=parallel) == most


def test_what_one_answer_asked_for_is_done_before_what_the_next_did() -> None:
    later = [Call(response="response-2"), write("file:a", response="response-2")]
    assert together(LOOK, *later) == 1
    assert together(write("file:b"), *later) == 1


def test_rejected_actions_are_in_nobodys_way() -> None:
    state = after(wanting(WRITE, LOOK, LOOK), rejection(id_of(4), "write"))
    assert acting(state) == [5, 6]


def test_delegated_actions_are_conversations_side_by_side() -> None:
    state = wanting(Call("delegate", ()), Call("delegate", ()), LOOK)
    assert [step.kind for step in decide(state, ())] == ["agent.delegate"] * 2
    mixed = wanting(Call("delegate", ("x",)), write("file:a"))
    assert [step.kind for step in decide(mixed, ())] == ["agent.delegate", "tool.call"]


touched = st.none() | st.lists(st.sampled_from("abc"), max_size=2, unique=True).map(tuple)
calls = st.builds(
    Call,
    name=st.sampled_from(["look", "write", "finish", "delegate"]),
    touches=touched,
    response=st.just("response-1"),
)


def clash(one: Call, other: Call) -> bool:
    """Said again, in other words than the code's."""
    both_read = {one.name, other.name} <= {"look", "finish"}
    known = one.touches is not None and other.touches is not None
    apart = known and not {*(one.touches or ())} & {*(other.touches or ())}
    return not (both_read or apart)


@given(st.lists(calls, min_size=1, max_size=7), st.lists(calls, max_size=3), st.integers(0, 5))
@settings(max_examples=40)
def test_whatever_is_asked_for_is_done_in_order_and_never_beside_what_it_clashes_with(
    one: list[Call], other: list[Call], parallel: int
) -> None:
    batch = [*one, *(Call(call.name, call.touches, "response-2") for call in other)]
    state = wanting(*batch, spec=SPEC.model_copy(update={"parallel": parallel}))
    expected = FIRST
    while state.pending:
        slots = acting(state)
        assert slots == list(range(expected, expected + len(slots)))
        chosen = [batch[slot - FIRST] for slot in slots]
        assert 1 <= len(chosen) <= max(1, parallel)
        assert len({call.response for call in chosen}) == 1
        assert not any(clash(a, b) for nth, a in enumerate(chosen) for b in chosen[nth + 1 :])
        expected += len(slots)
        if expected - FIRST < len(batch) and len(chosen) < max(1, parallel):
            left_out = batch[expected - FIRST]
            assert left_out.response != chosen[0].response or any(
                clash(left_out, call) for call in chosen
            ), "more could have been done"
        state = after(state, *(observation(id_of(slot), "look") for slot in slots))
    assert expected == FIRST + len(batch)
