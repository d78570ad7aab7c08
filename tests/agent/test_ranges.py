from collections.abc import Iterable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agent.ranges import Ranges, between, merged

some = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)), max_size=6).map(
    lambda starts: tuple((first, first + more) for first, more in starts)
)


def slots(ranges: Iterable[tuple[int, int]]) -> list[int]:
    return [slot for first, last in ranges for slot in range(first, last + 1)]


@given(some, some)
def test_merged_ranges_hold_all_slots_of_both_and_no_others(one: Ranges, other: Ranges) -> None:
    found = merged(merged((), one), other)
    assert slots(found) == sorted({*slots(one), *slots(other)})
    assert found == merged(found, ()) == merged(merged((), other), one)


@given(some)
def test_merged_ranges_are_in_order_and_apart(ranges: Ranges) -> None:
    found = merged((), ranges)
    assert all(first <= last for first, last in found)
    assert all(after[0] > before[1] + 1 for before, after in pairwise(found))


def test_ranges_come_as_json_has_them() -> None:
    assert merged(((1, 2),), [[3, 4], [9, 9]]) == ((1, 4), (9, 9))


@given(some, st.integers(0, 45))
def test_what_is_left_is_what_was_not_forgotten(ranges: Ranges, end: int) -> None:
    forgotten = merged((), ranges)
    left = list(between(forgotten, end))
    assert all(first <= last for first, last in left)
    assert slots(left) == sorted(set(range(end)) - set(slots(forgotten)))


def test_nothing_is_left_of_nothing() -> None:
    assert list(between((), 0)) == list(between(((0, 4),), 5)) == list(between(((3, 4),), 0)) == []
    assert list(between((), 3)) == [(0, 2)]
    assert list(between(((5, 6), (9, 9)), 3)) == [(0, 2)]
