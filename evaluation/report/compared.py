"""Batches against the first of them, as a whole and by group."""

from collections.abc import Sequence
from typing import NamedTuple

from evaluation.comparison import Comparison, compare
from evaluation.report import words
from evaluation.report.side import Side

TESTS = {
    "none": "no test",
    "mcnemar": "McNemar's exact test",
    "sign-flip": "sign-flip test, every combination",
    "sign-flip, drawn": "sign-flip test, combinations drawn",
    "normal": "sign-flip test, by the normal distribution",
}

MOST_CHANGED = 1000
"""Samples that changed with which a test is exact."""


MOST_KEYS = 40
"""Of the metadata, by which there is a breakdown."""


class What(NamedTuple):
    """What is compared: one metric of one scorer, under one reducer."""

    scorer: str
    metric: str
    reducer: str

    @property
    def name(self) -> str:
        return f"{words.metric_name(self.scorer, self.metric)}, {self.reducer}"


class Compared(NamedTuple):
    """`groups` are by key and value of the metadata that the first batch has.

    `ungrouped` are keys that have too many values, or of which there are too many themselves.
    """

    name: str
    comparison: Comparison
    groups: dict[str, dict[str, Comparison]]
    ungrouped: tuple[str, ...] = ()


def compared(name: str, before: Side, after: Side, metric: str, seed: int = 0) -> Compared:
    old, new = before.values.get(metric, {}), after.values.get(metric, {})
    groups = {
        key: {
            value: _within(values[value], old, new, seed)
            for value in sorted(values, key=words.order)
        }
        for key, values in sorted(before.groups.items())[:MOST_KEYS]
    }
    ungrouped = sorted(before.too_many | (before.groups.keys() - groups.keys()))
    return Compared(name, compare(old, new, seed), groups, tuple(ungrouped))


def _within(
    ids: Sequence[str], old: dict[str, float], new: dict[str, float], seed: int
) -> Comparison:
    return compare(
        {one: old[one] for one in ids if one in old},
        {one: new[one] for one in ids if one in new},
        seed,
    )


def name_of_test(found: Comparison) -> str:
    changed = len(found.better) + len(found.worse)
    if found.test == "mcnemar" and changed > MOST_CHANGED:
        return "McNemar's test, corrected"
    return TESTS[found.test]


def verdict(found: Comparison) -> str:
    """Whether the difference is more than noise, in a sentence or two."""
    if not found.pairs or found.difference is None or found.p_value is None:
        return "No sample has a score in both: nothing can be compared."
    if not found.better and not found.worse:
        return "No sample has another score than before."
    way = "up" if found.difference > 0 else "down"
    p_value, test = words.chance(found.p_value), name_of_test(found)
    equals = "" if p_value.startswith("<") else "= "
    if found.significant:
        return f"More than noise: the score went {way} (p {equals}{p_value}, {test})."
    chances = words.share(found.p_value, 1)
    return (
        f"Not more than noise: where nothing has changed, {chances} of comparisons show at least "
        f"this much (p {equals}{p_value}, {test})."
    )
