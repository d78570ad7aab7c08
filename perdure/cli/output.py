"""Output: results to stdout in the chosen format, everything else to stderr."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, TypeVar

from perdure.cli.options import Format
from perdure.errors import Invalid
from perdure.operations.error_reports import ErrorReport

if TYPE_CHECKING:
    from rich.text import Text

# rich is slow to import, and text on a pipe has no styles: functions import it for a terminal.

T = TypeVar("T")

# Control characters in a model's text could move the cursor, or write to the clipboard.
CONTROL_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(9), *range(11, 32), *range(127, 160))}

TERMINAL_VARIABLES = ("FORCE_COLOR", "TTY_COMPATIBLE")
"""Variables by which rich takes a pipe for a terminal."""


def is_terminal(stream: TextIO) -> bool:
    """Tell whether stdout or stderr is a terminal, as rich does."""
    if not stream.isatty() and not any(map(os.environ.get, TERMINAL_VARIABLES)):
        return False
    from perdure.cli import consoles

    return (consoles.stdout if stream is sys.stdout else consoles.stderr).is_terminal


def escape_controls(text: str) -> str:
    """Replace terminal control characters by visible escapes."""
    return text.replace("\r\n", "\n").translate(CONTROL_ESCAPES)


def shorten_line(text: str, max_chars: int = 300) -> str:
    """Join the words of a text to one line, and cut off the rest of a long one."""
    line = " ".join(text.split())
    return line if len(line) <= max_chars else f"{line[:max_chars]}..."


def show(text: "Text | str") -> None:
    """Print a line of a result."""
    text = escape_controls(text) if isinstance(text, str) else text
    if is_terminal(sys.stdout):
        from perdure.cli import consoles

        consoles.stdout.print(text)
    else:
        print(text, flush=True)


def show_parts(*parts: tuple[str, str]) -> None:
    """Print a line of a result whose parts, without control characters, have a style each."""
    if is_terminal(sys.stdout):
        from rich.text import Text

        show(Text.assemble(*parts))
    else:
        print("".join(text for text, _ in parts), flush=True)


def show_json(value: Any, output: Format) -> None:
    """Print a result: over several lines as `json`, on one as `jsonl`."""
    indent = 2 if output is Format.json else None
    print(json.dumps(value, ensure_ascii=False, indent=indent), flush=True)


def show_result(fields: Any, output: Format, *lines: "Text | str", remark: str = "") -> None:
    """Print a result: the fields for programs; lines, and a remark on stderr, for people."""
    if output is not Format.text:
        show_json(fields, output)
        return
    for line in lines:
        show(line)
    if remark:
        note(remark)


@contextmanager
def print_list(
    fields: Callable[[T], Any], show_item: Callable[[T], None], output: Format
) -> Iterator[Callable[[T], None]]:
    """Yield what prints an item of a list: at once, but as `json` in an array at the end."""
    documents: list[Any] = []

    def print_item(item: T) -> None:
        if output is Format.text:
            show_item(item)
        elif output is Format.json:
            documents.append(fields(item))
        else:
            show_json(fields(item), output)

    yield print_item
    if output is Format.json:
        show_json(documents, output)


def note(text: str, style: str = "dim") -> None:
    """Print a line to stderr, for what is not a result."""
    # rich puts a proxy there while a live region is drawn, which only its own console can move.
    stream: TextIO = getattr(sys.stderr, "rich_proxied_file", sys.stderr)
    if not is_terminal(stream):
        print(escape_controls(text), file=stream, flush=True)
        return
    from rich.text import Text

    from perdure.cli import consoles

    console = consoles.stderr if stream is sys.stderr else consoles.stdout
    console.print(Text(escape_controls(text), style=style))


def report_failure(failure: ErrorReport, output: Format) -> None:
    """Print a failure: on stderr for people, on stdout as JSON for programs."""
    if output is Format.text:
        note(f"perdure: {failure.message}", "red")
        if failure.hint:
            note(failure.hint, "")
        return
    error = {"code": failure.code, "message": failure.message, "hint": failure.hint}
    show_json({"error": error}, output)
    sys.stdout.flush()


@contextmanager
def open_output(output: str) -> Iterator[BinaryIO]:
    """Open a file that replaces the old one once it is written to its end; `-` is stdout.

    Raises Invalid where it cannot be written.
    """
    if output == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(output)
    partial = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            yield file
        partial.replace(path)
    except OSError as error:
        raise Invalid(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        partial.unlink(missing_ok=True)
