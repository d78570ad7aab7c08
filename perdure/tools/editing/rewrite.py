"""The edits of a text by `str_replace` and `insert`."""

import re
from dataclasses import dataclass
from itertools import islice

from perdure.tools.editing.text_file import Text, split_lines
from perdure.tools.tool import ToolFailed

_MAX_MATCHES = 20
"""Matches that an error lists."""


@dataclass(frozen=True)
class Rewrite:
    """A new text, and the first and last of its changed lines, counted from 1."""

    text: Text
    first: int
    last: int


def replace_text(text: Text, old: str, new: str, name: str) -> Rewrite:
    """Replace the only occurrence of `old` with `new`. Raises ToolFailed."""
    old, new = text.with_own_newlines(old), text.with_own_newlines(new)
    at = _find_unique_match(text, old, new, name)
    after = text.with_body(text.body[:at] + new + text.body[at + len(old) :])
    first = text.body.count("\n", 0, at) + 1
    return Rewrite(after, first, first + new.count("\n"))


def insert_lines(text: Text, after_line: int, inserted: str, name: str) -> Rewrite:
    """Insert whole lines after a line; 0 puts them first. Raises ToolFailed."""
    lines = text.lines
    if after_line > len(lines):
        raise ToolFailed(
            f"`insert_line` is {after_line}, but `{name}` has {len(lines)} lines: use 0 to "
            f"{len(lines)}."
        )
    new = split_lines(text.with_own_newlines(inserted)) or [""]
    body = "\n".join([*lines[:after_line], *new, *lines[after_line:]])
    ended = not text.body or text.body.endswith("\n")
    after = text.with_body(body + "\n" if ended else body)
    return Rewrite(after, after_line + 1, after_line + len(new))


def compare_texts(before: Text, after: Text) -> Rewrite:
    """Return `after` with the range of its lines that differ from `before`."""
    old, new = before.lines, after.lines
    shared = 0
    while shared < min(len(old), len(new)) and old[shared] == new[shared]:
        shared += 1
    tail = 0
    while tail < min(len(old), len(new)) - shared and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return Rewrite(after, shared + 1, len(new) - tail)


def _find_unique_match(text: Text, old: str, new: str, name: str) -> int:
    if not old:
        raise ToolFailed("`old_str` is empty: give the text to replace, or use `insert`.")
    if old == new:
        raise ToolFailed("`old_str` and `new_str` are the same: nothing would change.")
    # Overlapping occurrences too, as they are ambiguous.
    found = re.finditer(f"(?={re.escape(old)})", text.body)
    matches = [match.start() for match in islice(found, _MAX_MATCHES)]
    if not matches:
        raise ToolFailed(f"`old_str` does not occur in `{name}`. {_suggest_fix(text, old)}")
    if len(matches) > 1:
        lines = sorted({text.body.count("\n", 0, at) + 1 for at in matches})
        suffix = " and more" if len(matches) == _MAX_MATCHES else ""
        raise ToolFailed(
            f"`old_str` occurs more than once in `{name}`, at lines {', '.join(map(str, lines))}"
            f"{suffix}: take more of the lines around it into `old_str`."
        )
    return matches[0]


def _suggest_fix(text: Text, old: str) -> str:
    at = text.body.find(old.strip()) if old.strip() else -1
    if at >= 0:
        line = text.body.count("\n", 0, at) + 1
        return f"Line {line} has it with other whitespace around: copy it exactly."
    if text.newline == "\n" and "\r\n" in text.body:
        return "The file mixes line ends, so `old_str` needs \\r\\n where the file has it."
    return "View the file and copy the text exactly, without the line numbers."
