"""Plays schedules, and says what befell them: `python -m reliability.simulation --schedules 10000`.

The first schedule that breaks a law is told from beginning to end, its kind and its seed are kept
in `regressions.txt`, and the command fails. `--seed N` tells the schedule of that seed again.
"""

import argparse
import logging
import multiprocessing
import sys
import traceback
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import monotonic

from reliability.simulation.tally import Tally, run_seeds
from reliability.simulation.trials.kinds import CONVERSATION, KINDS, make_playable

REGRESSIONS = Path(__file__).with_name("regressions.txt")
CHUNK = 50


def main() -> int:
    options = _arguments()
    logging.disable(logging.CRITICAL)  # what goes wrong here is meant to
    if options.seed is not None and options.schedules is None:
        return _retold(options.kind or CONVERSATION, options.seed)
    first = options.seed or 0
    began, tally = monotonic(), Tally()
    for part in _parts(first, options.schedules or 10_000, options.processes, options.kind):
        tally.add(part)
        if tally.failed:
            break
        if sys.stderr.isatty():
            print(f"\r{tally.schedules.total():,}", end="", file=sys.stderr)
    _report(tally, monotonic() - began)
    if not tally.failed:
        return 0
    seed, kind = min(tally.failed)
    _keep(kind, seed)
    return _retold(kind, seed)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m reliability.simulation", description=__doc__)
    parser.add_argument("--schedules", type=int, help="how many seeds to play (10,000)")
    parser.add_argument("--seed", type=int, help="the first one; alone: tell this one")
    parser.add_argument("--processes", type=int, default=1, help="how many play at a time (1)")
    parser.add_argument("--kind", choices=KINDS, help="play this kind alone (each seed its own)")
    return parser.parse_args()


def _parts(first: int, schedules: int, processes: int, kind: str | None) -> Iterator[Tally]:
    end = first + schedules
    chunks = [range(seed, min(seed + CHUNK, end)) for seed in range(first, end, CHUNK)]
    with multiprocessing.get_context("spawn").Pool(processes, logging.disable, (50,)) as pool:
        yield from pool.imap_unordered(partial(run_seeds, kind=kind), chunks)


def _report(tally: Tally, seconds: float) -> None:
    number = tally.schedules.total()
    print(
        f"{number:,} schedules in {seconds:.0f} s, {number / seconds:.0f} a second: "
        f"{tally.events:,} events, {tally.requests:,} requests"
    )
    counted = (("kinds", tally.schedules), ("writers", tally.traces), ("faults", tally.faults))
    for title, counts in counted:
        print(f"{title}: " + ", ".join(f"{name} {n:,}" for name, n in counts.most_common()))


def _retold(kind: str, seed: int) -> int:
    """Tell the schedule of this kind and seed; 1 where it breaks a law."""
    playable = make_playable(kind, seed, telling=True)
    failure = None
    try:
        playable.run()
    except Exception as error:
        failure = error
    print("\n".join(playable.loop.trace or ()))
    if failure is None:
        print(f"seed {seed}: all laws hold")
        return 0
    if not isinstance(failure, AssertionError):
        traceback.print_exception(failure)
    print(f"seed {seed}: {type(failure).__name__}: {failure}")
    print(f"again: python -m reliability.simulation --kind {kind} --seed {seed}")
    return 1


def _keep(kind: str, seed: int) -> None:
    known = REGRESSIONS.read_text().splitlines()
    line = str(seed) if kind == CONVERSATION else f"{kind} {seed}"
    if line not in known:
        with REGRESSIONS.open("a") as file:
            file.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
