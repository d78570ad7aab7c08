"""Paired comparison of two runs over the same samples."""

from collections.abc import Mapping, Sequence
from itertools import compress, product
from math import comb, sqrt
from operator import mul
from statistics import fmean
from typing import Literal, TypeAlias

from perdure.evaluation.seeded_random import bits
from perdure.evaluation.statistics import Interval, Moments, normal_interval, two_sided_p_value
from perdure.events.base import Frozen

MAX_ENUMERATED_SIGNS = 16
"""The most differences of which every combination of signs is computed: 65,536 combinations."""

MAX_SAMPLED_SIGNS = 1000
"""The most differences whose signs are sampled; the sum of more is taken as normal."""

SIGN_SAMPLES = 10_000

TestName: TypeAlias = Literal["none", "mcnemar", "sign-flip", "sign-flip, drawn", "normal"]


class Change(Frozen):
    """A sample with a changed score."""

    id: str
    before: float
    after: float


class Comparison(Frozen):
    """The comparison of a second run with the first, over the samples scored in both.

    `difference` is the mean of after - before, `p_value` the probability of one at least as large
    under no change, by `test`. `better` and `worse` are sorted by the size of the change.
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
    test: TestName = "none"
    better: tuple[Change, ...] = ()
    worse: tuple[Change, ...] = ()

    @property
    def significant(self) -> bool:
        """The difference is significant at 5 %, without correction for multiple comparisons."""
        return self.p_value is not None and self.p_value < 0.05


def compare(before: Mapping[str, float], after: Mapping[str, float], seed: int = 0) -> Comparison:
    """Compare two runs, each with one value per sample id.

    Pairing removes the samples' own difficulty from the error (Miller 2024, 4.2).
    """
    ids = sorted(before.keys() & after.keys())
    one_sided = {
        "only_before": tuple(sorted(before.keys() - after.keys())),
        "only_after": tuple(sorted(after.keys() - before.keys())),
    }
    if not ids:
        return Comparison(pairs=0, **one_sided)
    differences = [after[name] - before[name] for name in ids]
    moments = Moments(differences)
    error = moments.standard_error
    binary = all(run[name] in (0.0, 1.0) for run in (before, after) for name in ids)
    better, worse = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    test, p_value = ("mcnemar", mcnemar(better, worse)) if binary else sign_flip(differences, seed)
    changed = sorted(
        (Change(id=name, before=before[name], after=after[name]) for name in ids),
        key=lambda change: (-abs(change.after - change.before), change.id),
    )
    return Comparison(
        pairs=len(ids),
        **one_sided,
        before=fmean(before[name] for name in ids),
        after=fmean(after[name] for name in ids),
        difference=moments.mean,
        standard_error=error,
        interval=None if error is None else normal_interval(moments.mean, error),
        p_value=p_value,
        test=test,
        better=tuple(change for change in changed if change.after > change.before),
        worse=tuple(change for change in changed if change.after < change.before),
    )


def mcnemar(better: int, worse: int) -> float:
    """Compute the p-value of McNemar's exact test (1947).

    From 1,001 changed samples on it is the normal approximation with Edwards' correction (1948).
    """
    changed = better + worse
    if not changed:
        return 1.0
    if changed > MAX_SAMPLED_SIGNS:
        return two_sided_p_value(max(0, abs(better - worse) - 1) / sqrt(changed))
    tail = sum(comb(changed, k) for k in range(min(better, worse) + 1))
    return min(1.0, tail / (1 << (changed - 1)))


def sign_flip(differences: Sequence[float], seed: int = 0) -> tuple[TestName, float]:
    """Compute the p-value of the sign-flip permutation test (Fisher 1935, 21).

    It uses every combination of signs up to MAX_ENUMERATED_SIGNS nonzero differences; beyond that
    SIGN_SAMPLES samples, with the observed one counted in (Phipson & Smyth 2010, 4); beyond
    MAX_SAMPLED_SIGNS the normal distribution of the sum.
    """
    sizes = [abs(d) for d in differences if d]
    # The tolerance makes sums that differ only by rounding equal.
    observed = abs(sum(differences)) - 1e-9 * sum(sizes)
    if len(sizes) > MAX_SAMPLED_SIGNS:
        return "normal", two_sided_p_value(sum(differences) / sqrt(sum(d * d for d in sizes)))
    if len(sizes) <= MAX_ENUMERATED_SIGNS:
        sums = [sum(map(mul, sizes, signs)) for signs in product((1, -1), repeat=len(sizes))]
        return "sign-flip", sum(abs(total) >= observed for total in sums) / len(sums)
    extreme = 0
    for draw in range(SIGN_SAMPLES):
        negative = sum(compress(sizes, bits(f"signs:{seed}:{draw}", len(sizes))))
        extreme += abs(sum(sizes) - 2 * negative) >= observed
    return "sign-flip, drawn", (1 + extreme) / (1 + SIGN_SAMPLES)
