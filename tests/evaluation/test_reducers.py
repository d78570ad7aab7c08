"""Epochs become one number."""

from itertools import combinations
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.evaluation.reducers import find_reducer, required_epochs

EPOCHS = st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("name", "values", "reduced"),
    [
        ("mean", [1, 0, 0, 1], 0.5),
        ("median", [3, 1, 2], 2),
        ("median", [4, 1, 3, 2], 2.5),
        ("mode", [0, 1, 1], 1),
        ("mode", [0.5, 1], 0.5),
        ("max", [0, 0.5], 0.5),
        ("best", [0, 0.5], 0.5),
        ("at_least_2", [1, 1, 0], 1),
        ("at_least_2", [1, 0.9, 0], 0),
        ("at_least_2", [1], None),
        ("pass@1", [1, 0, 0, 0], 0.25),
        ("pass@2", [1, 0, 0, 0], 0.5),
        ("pass@4", [1, 0, 0, 0], 1),
        ("pass@5", [1, 0, 0, 0], None),
        ("pass^2", [1, 1, 1, 0], 0.5),
        ("pass^5", [1, 1, 1, 0], None),
    ],
)
def test_each_reducer_computes_what_its_name_says(
    name: str, values: list[float], reduced: float | None
) -> None:
    assert find_reducer(name)(values) == reduced


@given(EPOCHS, st.integers(1, 8))
def test_pass_at_k_is_the_share_of_draws_with_a_correct_epoch(values: list[float], k: int) -> None:
    if k > len(values):
        return
    draws = [[value >= 1 for value in draw] for draw in combinations(values, k)]
    for name, holds in (("pass@", any), ("pass^", all)):
        share = find_reducer(f"{name}{k}")(values)
        assert share is not None
        assert isclose(share, sum(map(holds, draws)) / len(draws))


def test_pass_at_k_does_not_overflow() -> None:
    share = find_reducer("pass@500")([1.0] + [0.0] * 999)
    assert share is not None
    assert isclose(share, 0.5)


def test_a_reducer_knows_how_many_epochs_it_needs() -> None:
    assert [required_epochs(text) for text in ("mean", "pass@7", "pass^2", "at_least_3")] == [
        1,
        7,
        2,
        3,
    ]


@pytest.mark.parametrize("name", ["avg", "pass@0", "pass@", "pass@-1", "pass@1.5", "at_least_٣"])
def test_an_unknown_reducer_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="there is no reducer"):
        find_reducer(name)
