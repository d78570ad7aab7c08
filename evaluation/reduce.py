"""How the scores of a sample's epochs become one.

`mean`, `median`, `mode`, `max` (also called `best`), `at_least_K`: whether K epochs are right,
`pass@K`: the chance that one of K is, `pass^K`: the chance that all K are. Right is a number of 1
or more.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from math import comb, fsum
from typing import TypeAlias

Reducer: TypeAlias = Callable[[Sequence[float]], float | None]
"""None says that there are too few epochs to tell; no epoch at all is the caller's to handle."""


def mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def median(values: Sequence[float]) -> float:
    """The middle one, or the mean of the two in the middle."""
    ordered, half = sorted(values), len(values) // 2
    return mean(ordered[half - 1 + len(values) % 2 : half + 1])


def mode(values: Sequence[float]) -> float:
    """The most frequent one; of several the first."""
    return Counter(values).most_common(1)[0][0]


def at_least(values: Sequence[float], k: int) -> float | None:
    """1 where `k` epochs are right, 0 where they are not."""
    return None if len(values) < k else float(_right(values) >= k)


def pass_at(values: Sequence[float], k: int) -> float | None:
    """1 - C(n - c, k) / C(n, k), of which the mean is unbiased (Chen et al. 2021, eq. 1)."""
    n = len(values)
    return None if n < k else 1 - comb(n - _right(values), k) / comb(n, k)


def pass_all(values: Sequence[float], k: int) -> float | None:
    """C(c, k) / C(n, k), of which the mean is unbiased (tau-bench: Yao et al. 2024, 4)."""
    n = len(values)
    return None if n < k else comb(_right(values), k) / comb(n, k)


PLAIN: dict[str, Reducer] = {
    "mean": mean,
    "median": median,
    "mode": mode,
    "max": max,
    "best": max,
}

COUNTING: dict[str, Callable[[Sequence[float], int], float | None]] = {
    "at_least_": at_least,
    "pass@": pass_at,
    "pass^": pass_all,
}

_COUNTING = re.compile(r"(at_least_|pass@|pass\^)([1-9][0-9]{0,5})")


def reducer(name: str) -> Reducer:
    """Raises ValueError."""
    if name in PLAIN:
        return PLAIN[name]
    if (found := _COUNTING.fullmatch(name)) is None:
        counting = ", ".join(f"{one}K" for one in COUNTING)
        raise ValueError(
            f"there is no reducer {name!r}: there are {', '.join(PLAIN)}, {counting}, "
            "with a number for K"
        )
    counted, k = COUNTING[found[1]], int(found[2])
    return lambda values: counted(values, k)


def epochs_of(name: str) -> int:
    """How many epochs a reducer needs to tell anything. Raises ValueError."""
    reducer(name)
    found = _COUNTING.fullmatch(name)
    return int(found[2]) if found else 1


def _right(values: Sequence[float]) -> int:
    return sum(value >= 1 for value in values)
