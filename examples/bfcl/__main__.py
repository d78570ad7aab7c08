"""`python -m examples.bfcl`: run the benchmark's conversations and say which pass."""

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

if missing := [name for name in ("bfcl_eval", "mpmath") if find_spec(name) is None]:
    sys.exit(f"{' and '.join(missing)} missing: run `pip install --no-deps bfcl-eval mpmath`.")

from examples.bfcl.dataset import Sample, samples
from examples.bfcl.options import add_options, count, folder, parsed
from examples.bfcl.run import SURVIVORS, Plan, Report, Verdict, run
from perdure.embedded.errors import ProcessFailed


def main() -> None:
    """Exit code 0 means that every sample passed."""
    options = parsed(_parser(), SURVIVORS)
    plan = Plan(
        _chosen(options.ids, options.limit),
        options.concurrency,
        options.workers,
        options.kill_every,
    )
    start = time.monotonic()
    with folder(options.keep, "bfcl-") as place:
        report = _carried_out(plan, place)
    print(_summary(report, time.monotonic() - start))
    sys.exit(1 if report.failed else 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m examples.bfcl", description=__doc__)
    parser.add_argument("--limit", type=count, help="run only the first so many samples")
    parser.add_argument("--ids", nargs="+", metavar="ID", help="run these: multi_turn_base_7 or 7")
    add_options(parser)
    return parser


def _chosen(ids: Sequence[str] | None, limit: int | None) -> list[Sample]:
    every = samples()
    known = {str(sample.number): sample for sample in every.values()} | every
    if unknown := [name for name in ids or () if name not in known]:
        sys.exit(f"There is no sample {unknown[0]}: they are {', '.join([*every][:2])} and so on.")
    chosen = [known[name] for name in ids] if ids else list(every.values())
    return chosen[:limit]


def _carried_out(plan: Plan, folder: Path) -> Report:
    try:
        return asyncio.run(run(plan, folder, _tell))
    except* ProcessFailed as failures:
        sys.exit("\n".join(map(str, failures.exceptions)))


def _tell(verdict: Verdict) -> None:
    counts = f"{len(verdict.sample.turns)} turns, {verdict.events} events, {verdict.seconds:.1f} s"
    outcome = "failed" if verdict.failures else "passed"
    print(f"{verdict.sample.id}: {outcome} ({counts})", *verdict.failures, sep="\n  ", flush=True)


def _summary(report: Report, seconds: float) -> str:
    passed = len(report.verdicts) - report.failed
    summary = f"{passed} passed, {report.failed} failed in {seconds:.0f} s"
    if report.kills:
        summary += f"; {report.kills} kills, {report.hits} of them while a step was running"
    return summary


if __name__ == "__main__":
    main()
