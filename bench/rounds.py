"""Rounds of runs in turn, each with a run of the floor on both its sides, and what they say.

The order is reversed every other round: a machine that slows down slows all of them alike.
"""

import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from bench.figures import Spread, compare_runs, compare_with_floor, measure_spread, median_row

Row: TypeAlias = dict[str, float]
"""The figures of one run."""

RunOnce: TypeAlias = Callable[[], Awaitable[Row]]

BEFORE = " before"
"""The end of the name of a run of the checkout that ours is compared with."""

COMPARED = {"time": "time_ms", "cpu": "cpu_ms"}


@dataclass(frozen=True)
class Trial:
    """A run between two runs of the floor."""

    name: str
    round: int
    load: float
    row: Row
    floor_before: Row
    floor_after: Row


async def run_rounds(rounds: int, runs: Mapping[str, RunOnce], run_floor: RunOnce) -> list[Trial]:
    """Run everything in each round; neighbours share the floor between them."""
    trials = []
    for nth in range(rounds):
        floor = await run_floor()
        for name, run in reorder(runs, nth):
            before, row = floor, await run()
            floor = await run_floor()
            trials.append(Trial(name, nth, os.getloadavg()[0], row, before, floor))
        print(f"round {nth + 1} of {rounds} is done", file=sys.stderr, flush=True)
    return trials


def reorder(runs: Mapping[str, RunOnce], nth: int) -> list[tuple[str, RunOnce]]:
    """Return the runs in the order of this round."""
    items = list(runs.items())
    return items if nth % 2 == 0 else items[::-1]


def select(trials: Sequence[Trial], name: str) -> list[Trial]:
    """Return the trials of one name, by round."""
    return sorted((trial for trial in trials if trial.name == name), key=lambda item: item.round)


def report_trials(trials: Sequence[Trial]) -> dict[str, Any]:
    """Return the medians, the ratios to the floor, those of two checkouts, and every run."""
    names = list(dict.fromkeys(trial.name for trial in trials))
    floors = [row for trial in trials for row in (trial.floor_before, trial.floor_after)]
    return {
        "load": asdict(measure_spread([trial.load for trial in trials])),
        "medians": {
            "floor": median_row(floors),
            **{name: median_row([trial.row for trial in select(trials, name)]) for name in names},
        },
        "floor_ratios": {name: _floor_ratios(select(trials, name)) for name in names},
        "before_ratios": {
            name: _before_ratios(select(trials, name), select(trials, name + BEFORE))
            for name in names
            if name + BEFORE in names
        },
        "trials": [asdict(trial) for trial in trials],
    }


def _floor_ratios(trials: Sequence[Trial]) -> dict[str, Any]:
    return {
        title: asdict(
            compare_with_floor(
                [trial.row[column] for trial in trials],
                [trial.floor_before[column] for trial in trials],
                [trial.floor_after[column] for trial in trials],
            )
        )
        for title, column in COMPARED.items()
    }


def _before_ratios(now: Sequence[Trial], before: Sequence[Trial]) -> dict[str, Any]:
    return {
        title: asdict(
            compare_runs(
                [trial.row[column] for trial in now], [trial.row[column] for trial in before]
            )
        )
        for title, column in COMPARED.items()
    }


def show_trials(report: Mapping[str, Any], unit: str) -> None:
    """Print the medians and the ratios of a report; `unit` is what a row is about."""
    print(f"load {Spread(**report['load'])}; medians")
    show_rows(unit, report["medians"])
    show_ratios("over the floor", report["floor_ratios"])
    if report["before_ratios"]:
        show_ratios("now over before", report["before_ratios"])


def show_rows(title: str, rows: Mapping[str, Row]) -> None:
    """Print a table of figures, a line for each row."""
    widths = {name: max(len(name) + 2, 10) for row in rows.values() for name in row}
    print(f"{title:24}" + "".join(f"{name:>{width}}" for name, width in widths.items()))
    for name, row in rows.items():
        cells = (f"{row.get(column, 0):{width}.2f}" for column, width in widths.items())
        print(f"{name:24}" + "".join(cells))


def show_ratios(title: str, ratios: Mapping[str, Any]) -> None:
    """Print the ratios of the medians, and the median, least and greatest ratio of the pairs."""
    heads = "".join(f"{f'{name}: medians':>16}  {'pairs':22}" for name in COMPARED)
    print(f"{title:24}{heads}")
    for name, row in ratios.items():
        cells = "".join(
            f"{row[key]['medians']:16.2f}  {Spread(**row[key]['paired'])!s:22}" for key in COMPARED
        )
        print(f"{name:24}{cells}")
