"""Plays schedules, and says what befell them: `python -m reliability.simulation --schedules 10000`.

The first schedule that breaks a law is told from beginning to end, its seed is kept in
`regressions.txt`, and the command fails. `--seed N` tells the schedule of that seed again.
"""

import argparse
import logging
import multiprocessing
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

from reliability.simulation.laws import check
from reliability.simulation.play import make_schedule, play
from reliability.simulation.tally import Tally, run_seeds

REGRESSIONS = Path(__file__).with_name("regressions.txt")
CHUNK = 50


def main() -> int:
    options = _arguments()
    logging.disable(logging.CRITICAL)  # what goes wrong here is meant to
    if options.seed is not None and options.schedules is None:
        return _retold(options.seed)
    first = options.seed or 0
    began, tally = monotonic(), Tally()
    for part in _parts(first, options.schedules or 10_000, options.processes):
        tally.add(part)
        if tally.failed:
            break
        if sys.stderr.isatty():
            print(f"\r{tally.schedules:,}", end="", file=sys.stderr)
    _report(tally, monotonic() - began)
    if not tally.failed:
        return 0
    seed = min(tally.failed)
    _keep(seed)
    return _retold(seed)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m reliability.simulation", description=__doc__)
    parser.add_argument("--schedules", type=int, help="how many to play (10,000)")
    parser.add_argument("--seed", type=int, help="the first one; alone: tell this one")
    parser.add_argument("--processes", type=int, default=1, help="how many play at a time (1)")
    return parser.parse_args()


def _parts(first: int, schedules: int, processes: int) -> Iterator[Tally]:
    end = first + schedules
    chunks = [range(seed, min(seed + CHUNK, end)) for seed in range(first, end, CHUNK)]
    with multiprocessing.get_context("spawn").Pool(processes, logging.disable, (50,)) as pool:
        yield from pool.imap_unordered(run_seeds, chunks)


def _report(tally: Tally, seconds: float) -> None:
    print(
        f"{tally.schedules:,} schedules in {seconds:.0f} s, {tally.schedules / seconds:.0f} a "
        f"second: {tally.events:,} events, {tally.requests:,} requests"
    )
    for title, counts in (("writers", tally.traces), ("faults", tally.faults)):
        print(f"{title}: " + ", ".join(f"{name} {n:,}" for name, n in counts.most_common()))


def _retold(seed: int) -> int:
    """Tell the schedule of this seed; 1 where it breaks a law."""
    schedule = make_schedule(seed, telling=True)
    failure = None
    try:
        play(schedule)
        check(schedule)
    except Exception as error:
        failure = error
    print("\n".join(schedule.loop.trace or ()))
    if failure is None:
        print(f"seed {seed}: all laws hold")
        return 0
    if not isinstance(failure, AssertionError):
        traceback.print_exception(failure)
    print(f"seed {seed}: {type(failure).__name__}: {failure}")
    print(f"again: python -m reliability.simulation --seed {seed}")
    return 1


def _keep(seed: int) -> None:
    seeds = REGRESSIONS.read_text().split()
    if str(seed) not in seeds:
        with REGRESSIONS.open("a") as file:
            file.write(f"{seed}\n")


if __name__ == "__main__":
    sys.exit(main())
