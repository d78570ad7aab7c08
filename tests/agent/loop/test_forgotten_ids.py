"""Ids of messages that a state has forgotten: none that may come again is taken for new."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agent.loop.decide import decide
from perdure.agent.loop.forgotten_ids import may_be_forgotten, remember_id
from perdure.agent.loop.inbox import UserMessage
from perdure.agent.loop.steps import Record
from perdure.storage.ids import new_sortable_id
from tests.builders import apply_events, opened_state, state_update, user


def sortable(moment: int) -> str:
    """A UUID of version 7 of a millisecond."""
    value = moment << 80 | 0x7 << 76 | 0x2 << 62 | moment % 97
    return str(uuid.UUID(int=value))


@pytest.mark.long
@given(st.lists(st.tuples(st.integers(0, 10**6), st.booleans()), min_size=301, max_size=330))
def test_an_id_that_was_forgotten_is_never_sure_to_be_new(times: list[tuple[int, bool]]) -> None:
    ids = [sortable(at) if is_uuid else f"order {at}" for at, is_uuid in times]
    seqs, forgotten = dict[str, int](), None
    for seq, name in enumerate(ids):
        seqs, forgotten = remember_id(seqs, forgotten, name, seq)
    assert all(may_be_forgotten(forgotten, name) for name in ids if name not in seqs)
    assert len(seqs) <= 300


def test_a_new_uuid_is_sure_to_be_new_and_asks_no_log() -> None:
    seqs, forgotten = dict[str, int](), None
    for seq in range(1_000):
        seqs, forgotten = remember_id(seqs, forgotten, sortable(seq), seq)
    assert forgotten is not None
    assert forgotten.through_seq == 699
    assert not may_be_forgotten(forgotten, new_sortable_id())
    assert not may_be_forgotten(forgotten, "order 7")
    assert may_be_forgotten(forgotten, sortable(5))


def test_a_step_names_the_ids_that_the_log_is_to_be_asked_for() -> None:
    state = opened_state()
    for nth in range(302):
        state = apply_events(state, user(message_id=f"m{nth}"))
    items = [UserMessage(text="Again.", message_id=name) for name in ("m0", "m301", "other")]
    [step] = decide(state, items)
    assert isinstance(step, Record)
    assert (step.unsure_ids, step.ids_before) == (("m0", "other"), 5)


def test_a_message_that_came_again_is_known_where_it_stands() -> None:
    known = {"message_id": "m0", "seq": 3}
    state = apply_events(opened_state(), user(), state_update("repeated", known))
    assert (state.message_seqs, state.turn) == ({"m0": 3}, 1)
