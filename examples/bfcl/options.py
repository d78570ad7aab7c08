"""Options and the folder that the programs of the examples share."""

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that all runs of the benchmark have."""
    parser.add_argument("--concurrency", type=count, default=16, help="conversations at a time")
    parser.add_argument("--workers", type=count, default=2, help="worker processes")
    parser.add_argument(
        "--kill-every",
        type=seconds,
        metavar="SECONDS",
        help="SIGKILL a worker, and again so long after its successor is at work",
    )
    parser.add_argument("--keep", action="store_true", help="keep logs and stored objects")


def parsed(parser: argparse.ArgumentParser, survivors: int) -> argparse.Namespace:
    """The options; a kill has to leave so many workers at work."""
    options = parser.parse_args()
    if options.kill_every is not None and options.workers <= survivors:
        parser.error("--kill-every needs --workers 2 or more: one works while another starts")
    return options


@contextmanager
def folder(keep: bool, prefix: str) -> Iterator[Path]:
    """A folder for all that the servers write."""
    made = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield made
    finally:
        if keep:
            print(f"Logs and stored objects are in {made}.")
        else:
            shutil.rmtree(made)
