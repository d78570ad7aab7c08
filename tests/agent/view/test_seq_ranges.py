from collections.abc import Iterable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from perdure.agent.view.seq_ranges import SeqRanges, merge_ranges, remaining_ranges

some = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)), max_size=6).map(
    lambda starts: tuple((first, first + more) for first, more in starts)
)


def slots(ranges: Iterable[tuple[int, int]]) -> list[int]:
    return [slot for first, last in ranges for slot in range(first, last + 1)]


@given(some, some)
def test_merged_ranges_hold_all_slots_of_both_and_no_others(
    first: SeqRanges, second: SeqRanges
) -> None:
    union = merge_ranges(merge_ranges((), first), second)
    assert slots(union) == sorted({*slots(first), *slots(second)})
    assert union == merge_ranges(union, ()) == merge_ranges(merge_ranges((), second), first)


@given(some)
def test_merged_ranges_are_in_order_and_apart(ranges: SeqRanges) -> None:
    union = merge_ranges((), ranges)
    assert all(first <= last for first, last in union)
    assert all(after[0] > before[1] + 1 for before, after in pairwise(union))


def test_ranges_survive_json() -> None:
    assert merge_ranges(((1, 2),), [[3, 4], [9, 9]]) == ((1, 4), (9, 9))


@given(some, st.integers(0, 45))
def test_remaining_ranges_are_the_slots_not_forgotten(ranges: SeqRanges, end: int) -> None:
    forgotten = merge_ranges((), ranges)
    left = list(remaining_ranges(forgotten, end))
    assert all(first <= last for first, last in left)
    assert slots(left) == sorted(set(range(end)) - set(slots(forgotten)))


def test_an_empty_log_has_no_remaining_ranges() -> None:
    assert (
        list(remaining_ranges((), 0))
        == list(remaining_ranges(((0, 4),), 5))
        == list(remaining_ranges(((3, 4),), 0))
        == []
    )
    assert list(remaining_ranges((), 3)) == [(0, 2)]
    assert list(remaining_ranges(((5, 6), (9, 9)), 3)) == [(0, 2)]
