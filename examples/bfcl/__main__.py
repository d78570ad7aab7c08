"""`python -m examples.bfcl`: run the benchmark's conversations and say which pass."""

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

if missing := [name for name in ("bfcl_eval", "mpmath") if find_spec(name) is None]:
    sys.exit(f"{' and '.join(missing)} missing: run `pip install --no-deps bfcl-eval mpmath`.")

from embedded.errors import ProcessFailed
from examples.bfcl.dataset import Sample, samples
from examples.bfcl.run import SURVIVORS, Plan, Report, Verdict, run


def main() -> None:
    """Exit code 0 means that every sample passed."""
    parser = _parser()
    options = parser.parse_args()
    if options.kill_every is not None and options.workers <= SURVIVORS:
        parser.error("--kill-every needs --workers 2 or more: one works while another starts")
    plan = Plan(
        _chosen(options.ids, options.limit),
        options.concurrency,
        options.workers,
        options.kill_every,
    )
    start = time.monotonic()
    with _folder(options.keep) as folder:
        report = _carried_out(plan, folder)
    print(_summary(report, time.monotonic() - start))
    sys.exit(1 if report.failed else 0)


@contextmanager
def _folder(keep: bool) -> Iterator[Path]:
    """A folder for all that the servers write."""
    folder = Path(tempfile.mkdtemp(prefix="bfcl-"))
    try:
        yield folder
    finally:
        if keep:
            print(f"Logs and stored objects are in {folder}.")
        else:
            shutil.rmtree(folder)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m examples.bfcl", description=__doc__)
    parser.add_argument("--limit", type=_count, help="run only the first so many samples")
    parser.add_argument("--ids", nargs="+", metavar="ID", help="run these: multi_turn_base_7 or 7")
    parser.add_argument("--concurrency", type=_count, default=16, help="conversations at a time")
    parser.add_argument("--workers", type=_count, default=2, help="worker processes")
    parser.add_argument(
        "--kill-every",
        type=_seconds,
        metavar="SECONDS",
        help="SIGKILL a worker, and again so long after its successor is at work",
    )
    parser.add_argument("--keep", action="store_true", help="keep logs and stored objects")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


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
    said = f"{passed} passed, {report.failed} failed in {seconds:.0f} s"
    if report.kills:
        said += f"; {report.kills} kills, {report.hits} of them while a step was running"
    return said


if __name__ == "__main__":
    main()
