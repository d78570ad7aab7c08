"""The figures of a run as tables for people, in Markdown."""

from collections.abc import Mapping
from typing import Any

ROWS = {
    "seconds": "seconds measured",
    "load_average_before": "load average of the machine before",
    "cpu_percent_of_a_core": "CPU of the server, % of a core",
    "cpu_us_a_client_a_second": "CPU a client, µs a second",
    "memory_mb": "memory of the server, MB",
    "memory_kb_a_client": "memory a client, kB",
    "store_requests_a_second": "requests to the store a second",
    "temporal_requests_a_second": "requests to Temporal a second",
}

DETAILS = {
    "store": "… store, {}",
    "temporal": "… Temporal, {}",
    "others": "CPU of {}, % of a core",
}

DELIVERIES = {
    "lost": "events lost",
    "doubled": "events doubled",
    "unknown": "events that the log does not have",
    "out_of_order": "clients with another order",
    "deliveries": "deliveries timed",
    "parts_of_texts": "parts of texts received",
}


def show_report(report: Mapping[str, Mapping[str, Any]]) -> None:
    for name, part in report.items():
        print(f"\n## {name}\n")
        if reason := part.get("not_checked"):
            print(f"NOT CHECKED: {reason}")
            continue
        if reason := part.get("failed"):
            print(f"FAILED: {reason}")
            continue
        _show_setting(part)
        if "phases" in part:
            _show_phases(part["phases"])
        _show_deliveries(part)
        for fault in part["faults"]:
            print(f"FAULT: {fault}")
        print(f"{part['fault_count']} faults")


def _show_setting(part: Mapping[str, Any]) -> None:
    kinds = part.get("clients_of_a_conversation", {})
    each = f" ({', '.join(f'{count} by {kind}' for kind, count in kinds.items())} each)"
    sentence = f"{part['clients']} clients on {part['conversations']} conversations"
    if "working" in part:
        sentence += (
            f"{each}, of which {part['working']} work: {part['steps']} steps with answers of"
            f" {part['seconds_of_an_answer']} s; attached in {part['attach_seconds']} s"
        )
    print(f"{sentence}. The server without clients: {part['memory_mb_without_clients']} MB.\n")


def _show_phases(phases: Mapping[str, Mapping[str, Any]]) -> None:
    print(f"| | {' | '.join(phases)} |")
    print(f"|---|{'---|' * len(phases)}")
    for key, label in ROWS.items():
        cells = (str(figures.get(key, "not counted")) for figures in phases.values())
        print(f"| {label} | {' | '.join(cells)} |")
    for kind in ("store", "temporal", "others"):
        names = sorted({name for figures in phases.values() for name in figures.get(kind, ())})
        for name in names:
            cells = (str(figures[kind].get(name, 0)) for figures in phases.values())
            print(f"| {DETAILS[kind].format(name)} | {' | '.join(cells)} |")
    print()


def _show_deliveries(part: Mapping[str, Any]) -> None:
    if "requests_a_second" in part:
        print(f"Store and Temporal together: {part['requests_a_second']} requests a second.\n")
    if "delivery_ms" not in part:
        return
    print("| deliveries | |\n|---|---|")
    for key, label in DELIVERIES.items():
        print(f"| {label} | {part[key]} |")
    for name, milliseconds in part["delivery_ms"].items():
        print(f"| time after the append, {name}, ms | {milliseconds} |")
    for name, milliseconds in part["delivery_ms_after_the_burst"].items():
        print(f"| … of what was appended after the first 3 s, {name}, ms | {milliseconds} |")
    print()
