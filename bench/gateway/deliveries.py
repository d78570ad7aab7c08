"""What clients got, beside what there was to get, and how soon they got it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bench.figures import percentile

SHARES = {"median": 0.5, "p95": 0.95, "p99": 0.99, "longest": 1.0}

BURST_SECONDS = 3.0
"""Seconds after the first append in which all conversations at work are woken at once."""

MAX_FAULTS = 20
"""Faults that are told; the others are counted."""


def compare_deliveries(
    clients: Sequence[Mapping[str, Any]],
    stored: Mapping[str, Sequence[int | str]],
    appended: Mapping[tuple[str, int | str], float],
    failures: Sequence[str] = (),
) -> dict[str, Any]:
    """Compare what each client got with the events that were `stored` for its conversation.

    The time of a delivery counts from when the event was `appended`, for events that were so once
    the client was attached. What went wrong otherwise, `failures`, is told first.
    """
    counts: Counter[str] = Counter({"lost": 0, "doubled": 0, "out_of_order": 0})
    faults = list(failures)
    timed: list[tuple[float, float]] = []
    for client in clients:
        name, received = client["conversation_id"], client["received"]
        if client["fault"]:
            faults.append(f"{name}: {client['fault']}")
        got = [event for event, _ in received]
        times = Counter(got)
        lost = len(set(stored[name]) - set(got))
        doubled = times.total() - len(times)
        strange = len(set(got) - set(stored[name]))
        is_ordered = list(times) == [event for event in stored[name] if event in times]
        if lost or doubled or strange or not is_ordered:
            faults.append(f"{name}: {lost} events lost, {doubled} doubled, {strange} unknown")
        counts.update(lost=lost, doubled=doubled, unknown=strange, out_of_order=not is_ordered)
        attached_at = received[0][1] if received else 0.0
        timed += (
            (appended[name, event], at - appended[name, event])
            for event, at in received
            if appended.get((name, event), 0.0) > attached_at
        )
    if not timed:
        faults.append("No event was appended while clients were attached: nothing was measured.")
    return {
        **counts,
        "deliveries": len(timed),
        "parts_of_texts": sum(client["parts"] for client in clients),
        **_summarize_delays(timed),
        "fault_count": len(faults),
        "faults": faults[:MAX_FAULTS],
    }


def _summarize_delays(timed: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Summarize pairs of the time of an append and of its delay, with and without the burst."""
    burst_end = min((at for at, _ in timed), default=0.0) + BURST_SECONDS
    delays = {
        "delivery_ms": [delay for _, delay in timed],
        "delivery_ms_after_the_burst": [delay for at, delay in timed if at > burst_end],
    }
    return {
        name: {label: round(1000 * percentile(each, share), 1) for label, share in SHARES.items()}
        if each
        else {}
        for name, each in delays.items()
    }
