"""Differences of files, line by line and coloured."""

from difflib import unified_diff
from typing import TYPE_CHECKING

from perdure.cli.output import escape_controls
from perdure.events.observations import FileEditorObservation

if TYPE_CHECKING:
    from rich.text import Text

CONTEXT_LINES = 2

DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def diff_of_edit(observation: FileEditorObservation) -> list[str]:
    """Return the changed lines of an edit with some around them; empty where it changed nothing.

    A content that is long or no text is stored beside the event, and has no difference here.
    """
    old, new = observation.old_content or "", observation.new_content
    if new is None or observation.command == "view" or "blobs/" in (old[:6], new[:6]):
        return []
    lines = unified_diff(old.splitlines(), new.splitlines(), n=CONTEXT_LINES, lineterm="")
    return [escape_controls(line).expandtabs() for line in lines][2:]  # without the file's names


def summarize_diff(diff: list[str]) -> str:
    added = sum(line.startswith("+") for line in diff)
    removed = sum(line.startswith("-") for line in diff)
    return f"{added} line{'' if added == 1 else 's'} added, {removed} removed"


def style_diff_line(line: str, indent: str = "       ") -> "Text":
    from rich.text import Text  # slow

    return Text(f"{indent}{line}", DIFF_STYLES.get(line[:1], "dim"))
