"""`python -m reliability.batch_chaos`: SIGKILL everything, over and over, while a batch runs."""

import argparse
import asyncio
import json
import random
import sys
from dataclasses import replace
from pathlib import Path

from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

from reliability.batch_chaos.report import Report, format_report
from reliability.batch_chaos.run import Plan, run
from reliability.chaos.evidence import evidence_folder

SHORT = {"samples": 100, "strikes": 7, "at_a_time": 24}
FULL = {"samples": 2000, "strikes": 80, "at_a_time": 40}

NAME, QUIET = "chaos", "undisturbed"


def main() -> None:
    """Exit code 0 means: the same result, nothing lost, nothing begun anew, nothing paid twice
    that was on record."""
    options = _parser().parse_args()
    sizes = SHORT if options.short else FULL
    seed = random.randrange(1_000_000) if options.seed is None else options.seed
    plan = Plan(
        samples=options.samples or sizes["samples"],
        strikes=sizes["strikes"] if options.strikes is None else options.strikes,
        concurrency=options.at_a_time or sizes["at_a_time"],
        workers=options.workers,
        s3=not options.files,
        seed=seed,
    )
    print(f"seed {seed}", file=sys.stderr)
    # The SDK writes its warnings to standard output, where the report is to be.
    quiet = LoggingConfig(filter=TelemetryFilter(core_level="ERROR", other_level="ERROR"))
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=quiet)))
    with evidence_folder(options.keep) as evidence:
        reports = asyncio.run(_both(plan, evidence.path, alone=options.alone))
        evidence.keep |= any(report.violations for report in reports)
    runs = [{"seed": seed, **report.as_json()} for report in reports]
    if options.json:
        print(json.dumps(runs, indent=2, ensure_ascii=False))
    else:
        print("\n\n".join(map(format_report, runs)))
    sys.exit(1 if any(report.violations for report in reports) else 0)


async def _both(plan: Plan, folder: Path, *, alone: bool) -> list[Report]:
    """Undisturbed first, unless `alone`, and then with everything killed."""
    if alone:
        return [await run(plan, NAME, folder / NAME, _tell)]
    quiet = await run(replace(plan, strikes=0), QUIET, folder / QUIET, _tell)
    struck = await run(plan, NAME, folder / NAME, _tell)
    struck.compare_with_undisturbed(quiet)
    return [quiet, struck]


def _tell(line: str) -> None:
    print(line, file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m reliability.batch_chaos", description=__doc__)
    parser.add_argument("--short", action="store_true", help="some 100 samples, for every change")
    parser.add_argument(
        "--alone", action="store_true", help="hold it against the plan, with no undisturbed run"
    )
    parser.add_argument("--samples", type=int)
    parser.add_argument("--strikes", type=int, help="0: nothing is disturbed")
    parser.add_argument("--at-a-time", type=int, help="samples")
    parser.add_argument("--workers", type=int, default=3, help="worker processes, two or more")
    parser.add_argument("--files", action="store_true", help="a store of files in place of S3")
    parser.add_argument("--seed", type=int, help="decides all that chance decides here")
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    parser.add_argument("--keep", action="store_true", help="keep logs and stored objects")
    return parser


if __name__ == "__main__":
    main()
