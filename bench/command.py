"""What the commands of the benches share: their options, and their output."""

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.shapes import BY_NAME, Shape, choose_shapes
from bench.sides import Tree, choose_trees

Report = dict[str, Any]


def make_parser(
    module: str, description: str | None, rounds: int | None = None
) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    if rounds is not None:
        parser.add_argument("--rounds", type=at_least(1), default=rounds)
    return parser


def add_shapes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="NAME",
        choices=list(BY_NAME),
        help="shapes: files or s3, then any of +http +brief, or +http +condenser",
    )


def add_against(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--against",
        type=parse_trees,
        default=choose_trees(None),
        metavar="FOLDER",
        dest="trees",
        help="a checkout of another version, measured in turn with this one",
    )


def parse_trees(folder: str) -> Sequence[Tree]:
    try:
        return choose_trees(Path(folder))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def at_least(least: int) -> Callable[[str], int]:
    """Return the type of an option that takes such numbers."""

    def parse(text: str) -> int:
        number = int(text) if text.isdecimal() else -1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text} is no number from {least} on.")
        return number

    return parse


def add_parts(
    parser: argparse.ArgumentParser, parts: Sequence[str], default: Sequence[str]
) -> None:
    """Add the names of what is to be measured.

    argparse's own `choices` refuse a default of several names.
    """

    def parse(text: str) -> str:
        if text not in parts:
            raise argparse.ArgumentTypeError(f"{text} is none of {', '.join(parts)}.")
        return text

    parser.add_argument("parts", nargs="*", type=parse, default=default, metavar="|".join(parts))


def shapes_of(options: argparse.Namespace, default: Iterable[Shape]) -> list[Shape]:
    return choose_shapes(options.only, default)


def run_bench(
    parser: argparse.ArgumentParser,
    measure: Callable[[argparse.Namespace], Awaitable[Report]],
    show: Callable[[Report], None],
) -> Report:
    """Measure as the command line says, and print the report.

    ^C and SIGTERM end all processes that the bench has started, and then the bench.
    """
    options = parser.parse_args()

    async def run() -> Report:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await measure(options)

    try:
        report = asyncio.run(run())
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.exit("The bench was ended before it had measured everything.")
    if options.output == "json":
        json.dump(report, sys.stdout, indent=2)
    else:
        show(report)
    return report
