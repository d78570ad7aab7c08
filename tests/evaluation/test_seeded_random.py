"""A seed gives the same numbers everywhere and for ever."""

from hypothesis import given
from hypothesis import strategies as st

from perdure.evaluation.seeded_random import bits, integers, permutation


@given(st.text(), st.integers(0, 200))
def test_a_permutation_has_every_number_once(seed: str, length: int) -> None:
    assert sorted(permutation(seed, length)) == list(range(length))


def test_the_numbers_of_a_seed_never_change() -> None:
    assert permutation("1", 10) == [0, 2, 7, 4, 1, 6, 3, 5, 9, 8]
    assert list(integers("1", 2)) == [2598693870843663919, 13324761878908969589]
    assert bits("1", 8) == bytes([1, 0, 1, 1, 0, 0, 0, 0])


def test_every_permutation_is_equally_likely() -> None:
    counts: dict[tuple[int, ...], int] = {}
    for seed in range(6000):
        order = tuple(permutation(str(seed), 3))
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert all(850 < count < 1150 for count in counts.values())  # five standard deviations
