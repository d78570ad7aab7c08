"""What following costs a gateway: `python -m bench.gateway [idle] [load] [openhands] [-o json]`.

`idle`: conversations at rest, each with a client: requests a second, with workflows that have ended
and with open ones. `load`: clients on conversations of which some work: whether anything is lost or
comes twice, how soon it comes after it was appended, CPU and memory a client, and requests a
second. `openhands`: the same load on an agent-server of OpenHands, from its package.
"""

import argparse
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from bench.command import add_parts, at_least, make_parser, run_bench
from bench.gateway.ending import BenchFailed
from bench.gateway.idle import RESTS, run_idle
from bench.gateway.load import LoadPlan, run_load
from bench.gateway.openhands.load import run_openhands
from bench.gateway.tables import show_report

PARTS = ("idle", "load", "openhands")


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run the parts, one after the other: one that fails takes no figures from the others."""
    plan = make_plan(options)
    runs: dict[str, Callable[[], Awaitable[dict[str, Any]]]] = {}
    if "idle" in options.parts:
        for rest in options.rest:
            runs[f"idle, workflows {rest}"] = partial(run_idle, options.idle, options.seconds, rest)
    if "load" in options.parts:
        runs["load"] = partial(run_load, plan)
    if "openhands" in options.parts:
        runs["openhands"] = partial(run_openhands, plan)
    report: dict[str, Any] = {}
    for name, run in runs.items():
        try:
            report[name] = await run()
        except BenchFailed as error:
            report[name] = {"failed": str(error)}
    return report


def make_plan(options: argparse.Namespace) -> LoadPlan:
    each = {"socket": options.sockets, "stream": options.streams}
    return LoadPlan(
        options.conversations,
        min(options.working, options.conversations),
        {kind: count for kind, count in each.items() if count},
        options.steps,
        options.pace,
    )


def main() -> None:
    """Exit code 0 means that nothing was lost, and 77 that a part was not checked."""
    parser = make_parser("bench.gateway", __doc__)
    add_parts(parser, PARTS, PARTS)
    parser.add_argument("--idle", type=at_least(1), default=1000, help="conversations at rest")
    parser.add_argument("--seconds", type=at_least(1), default=60, help="of rest")
    parser.add_argument("--rest", nargs="+", choices=list(RESTS), default=list(RESTS))
    parser.add_argument("--conversations", type=at_least(1), default=200)
    parser.add_argument("--working", type=at_least(1), default=50)
    parser.add_argument("--sockets", type=at_least(0), default=3, help="on each conversation")
    parser.add_argument("--streams", type=at_least(0), default=2, help="on each conversation")
    parser.add_argument("--steps", type=at_least(1), default=30, help="of each turn")
    parser.add_argument("--pace", type=float, default=4.0, help="seconds of an answer")
    report = run_bench(parser, measure, show_report)
    if any(part.get("fault_count") or "failed" in part for part in report.values()):
        sys.exit(1)
    if any("not_checked" in part for part in report.values()):
        sys.exit(77)


if __name__ == "__main__":
    main()
