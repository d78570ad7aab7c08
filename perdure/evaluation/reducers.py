"""Reducers, which combine the scores of a sample's epochs into one number.

They are `mean`, `median`, `mode` (the first of several), `max` (also called `best`), `at_least_K`
(1 if at least K epochs are correct), `pass@K` (the probability that one of K is correct) and
`pass^K` (the probability that all K are). A number of 1 or more is correct.
"""

import re
from collections.abc import Callable, Sequence
from math import comb
from statistics import fmean, median, mode
from typing import TypeAlias

Reducer: TypeAlias = Callable[[Sequence[float]], float | None]
"""A function of at least one value; it returns None if there are too few epochs."""


def at_least_k(values: Sequence[float], k: int) -> float | None:
    """Return 1 if at least `k` epochs are correct, else 0."""
    return None if len(values) < k else float(_count_correct(values) >= k)


def pass_at_k(values: Sequence[float], k: int) -> float | None:
    """Compute 1 - C(n - c, k) / C(n, k), whose mean is unbiased (Chen et al. 2021, eq. 1)."""
    n = len(values)
    return None if n < k else 1 - comb(n - _count_correct(values), k) / comb(n, k)


def pass_hat_k(values: Sequence[float], k: int) -> float | None:
    """Compute C(c, k) / C(n, k), whose mean is unbiased (tau-bench: Yao et al. 2024, 4)."""
    n = len(values)
    return None if n < k else comb(_count_correct(values), k) / comb(n, k)


REDUCERS: dict[str, Reducer] = {
    "mean": fmean,
    "median": median,
    "mode": mode,
    "max": max,
    "best": max,
}

K_REDUCERS: dict[str, Callable[[Sequence[float], int], float | None]] = {
    "at_least_": at_least_k,
    "pass@": pass_at_k,
    "pass^": pass_hat_k,
}

_K_REDUCER_NAME = re.compile(r"(at_least_|pass@|pass\^)([1-9][0-9]{0,5})")


def find_reducer(name: str) -> Reducer:
    """Find a reducer by its name. Raises ValueError if there is none."""
    if name in REDUCERS:
        return REDUCERS[name]
    if (match := _K_REDUCER_NAME.fullmatch(name)) is None:
        with_k = ", ".join(f"{prefix}K" for prefix in K_REDUCERS)
        raise ValueError(
            f"there is no reducer {name!r}: there are {', '.join(REDUCERS)}, {with_k}, "
            "with a number for K"
        )
    reduce, k = K_REDUCERS[match[1]], int(match[2])
    return lambda values: reduce(values, k)


def required_epochs(name: str) -> int:
    """Return the number of epochs that a reducer needs. Raises ValueError if there is none."""
    find_reducer(name)
    match = _K_REDUCER_NAME.fullmatch(name)
    return int(match[2]) if match else 1


def _count_correct(values: Sequence[float]) -> int:
    return sum(value >= 1 for value in values)
