"""CPU a step in each tenth of a conversation, from samples taken all along."""

from collections.abc import Sequence
from typing import Any

from bench.cost import Samples
from bench.figures import measure_drift, split_by_tenths


def report_tenths(steps: Sequence[float], samples: Samples) -> dict[str, Any]:
    """Return milliseconds a step by tenth: own CPU, Temporal's, their sum, the store's, and time.

    `steps` are the times at which steps ended.
    """
    costs = samples.costs
    figures = {
        "cpu_ms": [cost.cpu for cost in costs],
        "own_cpu_ms": [cost.own for cost in costs],
        "temporal_cpu_ms": [cost.temporal for cost in costs],
        "store_cpu_ms": [cost.store for cost in costs],
        "time_ms": samples.times(),
    }
    return {
        name: [1000 * tenth for tenth in split_by_tenths(steps, samples.times(), figure)]
        for name, figure in figures.items()
    }


def drifts(tenths: dict[str, Any]) -> dict[str, float]:
    """Return the last tenth over the first, of all but the store, which may have no part."""
    return {name: measure_drift(row) for name, row in tenths.items() if name != "store_cpu_ms"}


def show_tenths(title: str, tenths: Sequence[float]) -> None:
    print(f"{title:44}" + "".join(f"{tenth:7.1f}" for tenth in tenths))
