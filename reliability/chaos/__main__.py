"""`python -m reliability.chaos`: kill workers and Temporal, and check that nothing is lost."""

import argparse
import asyncio
import json
import random
import sys

from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

from reliability.chaos.evidence import evidence_folder
from reliability.chaos.report import format_report
from reliability.chaos.run import Plan, run

SHORT = {"kills": 20, "server_kills": 2}
FULL = {"kills": 300, "server_kills": 10}

FREEZE_EVERY = 10
"""Of this many strikes, one freezes a worker and does not kill it."""


def main() -> None:
    """Exit code 0 means that nothing was lost, done twice, or out of order."""
    options = _parser().parse_args()
    least = SHORT if options.short else FULL
    kills = least["kills"] if options.kills is None else options.kills
    server_kills = least["server_kills"] if options.server_kills is None else options.server_kills
    seed = random.randrange(1_000_000) if options.seed is None else options.seed
    plan = Plan(
        kills=kills,
        server_kills=server_kills,
        frozen=kills // FREEZE_EVERY,
        conversations=options.conversations,
        workers=options.workers,
        faults=options.faults,
        every=options.every,
        seed=seed,
    )
    print(f"seed {seed}", file=sys.stderr)
    # The SDK writes its warnings to standard output, where the report is to be.
    quiet = LoggingConfig(filter=TelemetryFilter(core_level="ERROR", other_level="ERROR"))
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=quiet)))
    with evidence_folder(options.keep) as evidence:
        report = asyncio.run(run(plan, evidence.path, lambda line: print(line, file=sys.stderr)))
        evidence.keep |= bool(report.violations)
    report_fields = report.as_json()
    print(json.dumps(report_fields, indent=2) if options.json else format_report(report_fields))
    sys.exit(1 if report.violations else 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m reliability.chaos", description=__doc__)
    parser.add_argument("--short", action="store_true", help="some 20 kills, for every change")
    parser.add_argument("--kills", type=int, help="workers to SIGKILL")
    parser.add_argument("--server-kills", type=int, help="how often to SIGKILL Temporal")
    parser.add_argument("--conversations", type=int, default=10, help="at a time")
    parser.add_argument("--workers", type=int, default=3, help="worker processes, two or more")
    parser.add_argument("--faults", type=float, default=0.05, help="share of the store's requests")
    parser.add_argument("--every", type=float, default=0.5, help="seconds from strike to strike")
    parser.add_argument("--seed", type=int, help="decides all that chance decides here")
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    parser.add_argument("--keep", action="store_true", help="keep logs and stored objects")
    return parser


if __name__ == "__main__":
    main()
