"""Makes inputs for what reads them: `python -m reliability.fuzz --seconds 60`.

Those that reach new lines are what later ones are made of. One that raises what is no answer, that
takes 10 s or too much memory, is kept in `found/` under its target's name, where the tests play it
again, and the command fails. `--target NAME` is for one alone, `--seed N` for other inputs.
"""

import argparse
import faulthandler
import hashlib
import logging
import multiprocessing
import resource
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from random import Random
from time import monotonic

from reliability.fuzz.mutation import mutate
from reliability.fuzz.targets import TARGETS
from reliability.fuzz.watch import (
    Coverage,
    Hanging,
    Target,
    run_target,
    run_with_memory_check,
    time_limit,
)

FOUND = Path(__file__).with_name("found")

MAX_MEMORY_BYTES = 4 << 30
"""Bytes that a process may have."""

HANG_TIMEOUT = 60
"""Seconds after which a process is ended that not even an alarm gets out of a library."""

FOUND_EXIT_CODE = 3
"""How a process ends that has kept what it found."""

MAX_TRACED_BYTES = 4_096
"""Bytes of an input whose lines are looked at: it takes ten times as long."""

MEMORY_CHECK_INTERVAL = 32
"""Every so many inputs the memory is measured, which takes its time."""


def main() -> int:
    options = _arguments()
    chosen = [item for item in TARGETS if options.target in (None, item.name)]
    if not chosen:
        print(f"There is no target {options.target}: {', '.join(item.name for item in TARGETS)}.")
        return 2
    share = options.seconds / len(chosen)
    return max(fuzz_in_process(target, share, options.seed) for target in chosen)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m reliability.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="for all targets together (60)")
    parser.add_argument("--target", help="this one alone")
    parser.add_argument("--seed", type=int, default=0, help="for other inputs (0)")
    return parser.parse_args()


def fuzz_in_process(target: Target, seconds: float, seed: int) -> int:
    """In a process of its own, whose end cannot lose the input that ended it."""
    with tempfile.NamedTemporaryFile(prefix="fuzz-") as current:
        arguments = (target, seconds, seed, current.name)
        process = multiprocessing.get_context("fork").Process(target=_fuzz, args=arguments)
        process.start()
        process.join()
        if process.exitcode not in (0, FOUND_EXIT_CODE):
            print(f"{target.name}: the process ended with {process.exitcode}")
            save_input(target, Path(current.name).read_bytes())
    return 0 if process.exitcode == 0 else 1


def _fuzz(target: Target, seconds: float, seed: int, current: str) -> None:
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    random, coverage, corpus = Random(f"{target.name} {seed}"), Coverage(), list(target.seeds)
    inputs, until, faults = 0, monotonic() + seconds, set[str]()
    with Path(current).open("r+b", buffering=0) as status_file:
        while inputs < len(target.seeds) or monotonic() < until:
            data = corpus[inputs] if inputs < len(target.seeds) else mutate(random, corpus)
            status_file.truncate(0)
            status_file.seek(0)
            status_file.write(data)
            reached = len(coverage)
            fault = find_fault(target, data, coverage, weigh=inputs % MEMORY_CHECK_INTERVAL == 0)
            if fault is None and len(coverage) > reached and inputs >= len(target.seeds):
                corpus.append(data)
            elif fault is not None and fault not in faults:
                print(f"{target.name} does not stand {data[:200]!r}, {len(data):,} bytes:\n{fault}")
                save_input(target, data)
                faults.add(fault)
            inputs += 1
    print(f"{target.name}: {inputs:,} inputs, {len(corpus):,} kept, {len(coverage):,} lines")
    sys.exit(FOUND_EXIT_CODE if faults else 0)


def find_fault(target: Target, data: bytes, coverage: Coverage, *, weigh: bool) -> str | None:
    """Name an error and its place: the same for the same mistake."""
    faulthandler.dump_traceback_later(HANG_TIMEOUT, exit=True)
    try:
        with time_limit():
            if weigh:
                run_with_memory_check(target, data)
            elif len(data) > MAX_TRACED_BYTES:
                run_target(target, data)
            else:
                with coverage.tracing():
                    run_target(target, data)
    except (Exception, Hanging) as error:
        places = traceback.extract_tb(error.__traceback__, limit=-4)
        where = "".join(f"  {place.filename}:{place.lineno}\n" for place in places)
        return f"{where}{type(error).__name__}: {str(error)[:120]}"
    finally:
        faulthandler.cancel_dump_traceback_later()
    return None


def save_input(target: Target, data: bytes) -> None:
    path = FOUND / f"{target.name}-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    print(f"  kept as {path}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
