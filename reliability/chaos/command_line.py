"""The command line of a harness: its options, its seed, its report and its exit code."""

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NoReturn

from reliability.chaos.evidence import evidence_folder

MAX_SEED = 1_000_000


def new_parser(module: str, description: str | None) -> argparse.ArgumentParser:
    """Make the parser of the options that each harness has."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--short", action="store_true", help="for every change")
    parser.add_argument("--seed", type=int, help="decides all that chance decides here")
    parser.add_argument("--keep", action="store_true", help="keep logs and stored objects")
    return parser


def parse_options(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parse the options; a seed that none names is drawn, and told."""
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.randrange(MAX_SEED)
    print(f"seed {options.seed}", file=sys.stderr)
    return options


def run_harness(run: Callable[[Path], Coroutine[Any, Any, dict[str, Any]]], keep: bool) -> NoReturn:
    """Run a harness in a folder, print its report, and exit with 1 if that has findings.

    With findings the folder is kept.
    """
    with evidence_folder(keep) as evidence:
        report = asyncio.run(run(evidence.path))
        evidence.keep |= bool(report["findings"])
    print(json.dumps(report, indent=2))
    sys.exit(1 if report["findings"] else 0)
