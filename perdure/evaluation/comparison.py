"""Paired comparison of two runs over the same samples."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from perdure.evaluation.statistics import Interval, Moments, t_p_value, t_quantile
from perdure.events.base import Frozen


class Change(Frozen):
    """A sample with a changed score."""

    id: str
    before: float
    after: float


class Comparison(Frozen):
    """The comparison of a second run with the first, over the samples scored in both.

    `difference` is the mean of after - before, with its own standard error. `interval` and
    `p_value` are of one test (`run_paired_test`), so that the interval is without 0 where the
    difference is significant, and nowhere else. `better` and `worse` are sorted by the size of the
    change.
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
    better: tuple[Change, ...] = ()
    worse: tuple[Change, ...] = ()

    @property
    def significant(self) -> bool:
        """The difference is significant at 5 %, without correction for multiple comparisons."""
        return self.p_value is not None and self.p_value < 0.05


def compare(before: Mapping[str, float], after: Mapping[str, float]) -> Comparison:
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
    moments, test = Moments(differences), run_paired_test(differences)
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
        standard_error=moments.standard_error,
        interval=test.interval,
        p_value=test.p_value,
        better=tuple(change for change in changed if change.after > change.before),
        worse=tuple(change for change in changed if change.after < change.before),
    )


class PairedTest(NamedTuple):
    """A 95 % interval of the mean difference, and the p-value of no difference, of one test."""

    interval: Interval
    p_value: float


def run_paired_test(differences: Sequence[float]) -> PairedTest:
    """Test whether the mean of at least one difference is 0, by Student's t with two pairs added.

    One added pair is better and the other worse, by as much as the greatest change. With scores of
    0 and 1 that is the adjustment of Bonett & Price (2012): it keeps the promised error rates with
    few samples, where the plain interval is too short.
    """
    most = max(map(abs, differences))
    if not most:
        return PairedTest(Interval(0.0, 0.0), 1.0)
    # Relative to the greatest, so that no square is too small for a float.
    moments = Moments([*(difference / most for difference in differences), 1.0, -1.0])
    error, freedom = moments.standard_error, moments.count - 1
    assert error, "the two added pairs differ"
    half = t_quantile(freedom) * error
    interval = Interval(most * (moments.mean - half), most * (moments.mean + half))
    return PairedTest(interval, t_p_value(moments.mean / error, freedom))
