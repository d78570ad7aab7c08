"""Exit codes and output of the programs of this example."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

from examples.bfcl.options import folder
from examples.evals.engine import Run
from perdure.embedded.errors import ProcessFailed
from perdure.errors import ClientError
from perdure.evaluation.progress import Progress
from perdure.evaluation.summary import summarize


def run_and_exit(work: Callable[[Path], Coroutine[Any, Any, Sequence[str]]], keep: bool) -> None:
    """Do the work, and end the program: with 0 if it found no failures."""
    with folder(keep, "evals-") as place:
        try:
            failures = asyncio.run(work(place))
        except* (ProcessFailed, ClientError) as errors:
            sys.exit("\n".join(map(str, errors.exceptions)))
    print(*(f"FAILED: {failure}" for failure in failures), sep="\n", end="\n" if failures else "")
    sys.exit(1 if failures else 0)


def print_progress(progress: Progress) -> None:
    left = "" if progress.seconds_left is None else f", {progress.seconds_left:.0f} s left"
    ended = progress.done + progress.failed
    print(f"{ended} of {progress.expected} done, {progress.running} running{left}", flush=True)


def report_lines(run: Run) -> Iterator[str]:
    """Report a batch, line by line."""
    summary = summarize(run.results, run.progress.expected)
    counts = summary.counts
    yield (
        f"{counts.expected} samples: {counts.scored} scored, {counts.limited} limited, "
        f"{counts.failed} failed, {counts.missing} missing"
    )
    for measure in summary.measures:
        for reducer, item in measure.estimates.items():
            error = "" if item.standard_error is None else f" ± {item.standard_error:.4f}"
            yield f"{measure.scorer} ({reducer}): {item.mean:.4f}{error}"
    again = f", {run.asked.again} of them again after a kill" if run.kills else ""
    yield f"{run.asked.calls} calls counted by the model{again}"
    pace = counts.expected / run.seconds
    kills = f", with {len(run.kills)} workers killed" if run.kills else ""
    yield f"{run.seconds:.0f} s, {pace:.1f} samples a second{kills}"
