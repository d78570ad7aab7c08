"""Results on stdout, in the format that was asked for; everything else on stderr."""

import json
import sys
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from cli.failures import Failure


class Format(StrEnum):
    """How results are printed."""

    text = "text"
    json = "json"
    jsonl = "jsonl"


Output = Annotated[
    Format, typer.Option("-o", "--output", help="How to print results.", metavar="FORMAT")
]

# Words of a model could otherwise move the cursor, or write to the clipboard.
CONTROLS = {code: f"\\x{code:02x}" for code in (*range(9), *range(11, 32), *range(127, 160))}

stdout = Console(highlight=False, markup=False, soft_wrap=True)
stderr = Console(highlight=False, markup=False, soft_wrap=True, stderr=True)


def plain(text: str) -> str:
    """The text without anything that a terminal would obey."""
    return text.replace("\r\n", "\n").translate(CONTROLS)


def show(text: Text | str) -> None:
    """A line of a result."""
    stdout.print(text if isinstance(text, Text) else plain(text))


def show_json(value: Any, output: Format) -> None:
    """A result: over several lines as `json`, on one as `jsonl`."""
    indent = 2 if output is Format.json else None
    print(json.dumps(value, ensure_ascii=False, indent=indent), flush=True)


def note(text: str, style: str = "dim") -> None:
    """What is not a result: for the person, who reads stderr."""
    stderr.print(Text(plain(text), style=style))


def report(failure: Failure, output: Format) -> None:
    """Tell of a failure: programs look for it where they look for the result."""
    if output is Format.text:
        stderr.print(Text(f"perdure: {plain(failure.message)}", style="red"))
        if failure.hint:
            stderr.print(plain(failure.hint))
        return
    error = {"code": failure.code, "message": failure.message, "hint": failure.hint}
    show_json({"error": error}, output)
    sys.stdout.flush()
