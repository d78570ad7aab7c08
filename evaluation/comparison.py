"""Whether two runs over the same samples differ by more than noise."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from math import comb, sqrt
from typing import Literal, TypeAlias

from evaluation.dice import coins
from evaluation.statistics import Interval, moments, normal, two_sided
from events.base import Frozen

MOST_ENUMERATED = 16
"""Differences of which every combination of signs is tried: 65,536."""

MOST_FLIPPED = 1000
"""Differences whose signs are drawn; the sum of more is normal."""

DRAWS = 10_000

Test: TypeAlias = Literal["none", "mcnemar", "sign-flip", "sign-flip, drawn", "normal"]


class Change(Frozen):
    """A sample whose score is another one than before."""

    id: str
    before: float
    after: float


class Comparison(Frozen):
    """The second run against the first, over the samples that both have a score for.

    `difference` is the mean of after - before, `p_value` the chance of one at least as large where
    nothing has changed, `test` what it comes from. What changed most stands first.
    """

    pairs: int
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    before: float | None = None
    after: float | None = None
    difference: float | None = None
    standard_error: float | None = None
    interval: Interval | None = None
    p_value: float | None = None
    test: Test = "none"
    better: tuple[Change, ...] = ()
    worse: tuple[Change, ...] = ()

    @property
    def significant(self) -> bool:
        """At the usual 5 %; of many comparisons one in twenty is so by chance."""
        return self.p_value is not None and self.p_value < 0.05


def compare(before: Mapping[str, float], after: Mapping[str, float], seed: int = 0) -> Comparison:
    """One value a sample in each, by the sample's id.

    Pairing takes the samples' own difficulty out of the error (Miller 2024, 4.2).
    """
    ids = sorted(before.keys() & after.keys())
    one_sided = {
        "only_before": tuple(sorted(before.keys() - after.keys())),
        "only_after": tuple(sorted(after.keys() - before.keys())),
    }
    if not ids:
        return Comparison(pairs=0, **one_sided)
    differences = [after[name] - before[name] for name in ids]
    found = moments(differences)
    error = found.standard_error
    binary = all(one[name] in (0.0, 1.0) for one in (before, after) for name in ids)
    test, p_value = _mcnemar(differences) if binary else sign_flip(differences, seed)
    changed = sorted(
        (Change(id=name, before=before[name], after=after[name]) for name in ids),
        key=lambda one: (-abs(one.after - one.before), one.id),
    )
    return Comparison(
        pairs=len(ids),
        **one_sided,
        before=moments([before[name] for name in ids]).mean,
        after=moments([after[name] for name in ids]).mean,
        difference=found.mean,
        standard_error=error,
        interval=None if error is None else normal(found.mean, error),
        p_value=p_value,
        test=test,
        better=tuple(one for one in changed if one.after > one.before),
        worse=tuple(one for one in changed if one.after < one.before),
    )


def mcnemar(better: int, worse: int) -> float:
    """The exact test: of the samples that changed, half are better by chance (McNemar 1947).

    Over 1,000 of them by the normal distribution, with Edwards' correction (1948).
    """
    changed = better + worse
    if not changed:
        return 1.0
    if changed > MOST_FLIPPED:
        return two_sided(max(0, abs(better - worse) - 1) / sqrt(changed))
    tail = sum(comb(changed, k) for k in range(min(better, worse) + 1))
    return min(1.0, tail / (1 << (changed - 1)))


def _mcnemar(differences: Sequence[float]) -> tuple[Test, float]:
    better, worse = sum(one > 0 for one in differences), sum(one < 0 for one in differences)
    return "mcnemar", mcnemar(better, worse)


def sign_flip(differences: Sequence[float], seed: int = 0) -> tuple[Test, float]:
    """The chance of a sum at least as far from 0 if each sign were a coin's (Fisher 1935, 21).

    Every combination of signs up to MOST_ENUMERATED differences that are not 0; beyond that DRAWS
    of them, with the observed one counted in (Phipson & Smyth 2010, 4); beyond MOST_FLIPPED by the
    normal distribution of the sum.
    """
    sizes = [abs(one) for one in differences if one]
    # Sums that differ by rounding alone are the same sum.
    observed = abs(sum(differences)) - 1e-9 * sum(sizes)
    if len(sizes) > MOST_FLIPPED:
        return "normal", two_sided(sum(differences) / sqrt(sum(one * one for one in sizes)))
    if len(sizes) <= MOST_ENUMERATED:
        sums = _all_sums(sizes)
        return "sign-flip", sum(abs(one) >= observed for one in sums) / len(sums)
    extreme = sum(abs(one) >= observed for one in _drawn_sums(sizes, seed))
    return "sign-flip, drawn", (1 + extreme) / (1 + DRAWS)


def _all_sums(sizes: Sequence[float]) -> list[float]:
    sums = [0.0]
    for size in sizes:
        sums = [one + sign * size for one in sums for sign in (1, -1)]
    return sums


def _drawn_sums(sizes: Sequence[float], seed: int) -> Iterator[float]:
    """A sum for each row of coins: all of it, less twice what came up negative."""
    total = sum(sizes)
    for draw in range(DRAWS):
        yield total - 2 * sum(compress(sizes, coins(f"signs:{seed}:{draw}", len(sizes))))
