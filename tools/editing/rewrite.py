"""Small changes of a text: what `str_replace` and `insert` make of it."""

from dataclasses import dataclass

from tools.editing.text_file import Text, lines_of
from tools.tool import ToolFailed

_MOST_PLACES = 20
"""Places that a complaint names."""


@dataclass(frozen=True)
class Rewritten:
    """A text as it is to be, and the lines of it that are new, counted from 1."""

    text: Text
    first: int
    last: int


def replaced(text: Text, old: str, new: str, name: str) -> Rewritten:
    """The text with `new` in the only place of `old`. Raises ToolFailed."""
    old, new = text.meant(old), text.meant(new)
    at = _only_place(text, old, new, name)
    after = text.with_body(text.body[:at] + new + text.body[at + len(old) :])
    first = text.body.count("\n", 0, at) + 1
    return Rewritten(after, first, first + new.count("\n"))


def inserted(text: Text, after_line: int, given: str, name: str) -> Rewritten:
    """The text with what is given as whole lines after a line; 0 puts them first."""
    lines = text.lines
    if after_line > len(lines):
        raise ToolFailed(
            f"`insert_line` is {after_line}, but `{name}` has {len(lines)} lines: use 0 to "
            f"{len(lines)}."
        )
    new = lines_of(text.meant(given)) or [""]
    body = "\n".join([*lines[:after_line], *new, *lines[after_line:]])
    ended = not text.body or text.body.endswith("\n")
    after = text.with_body(body + "\n" if ended else body)
    return Rewritten(after, after_line + 1, after_line + len(new))


def difference(before: Text, after: Text) -> Rewritten:
    """`after`, with the lines between the beginning and the end that it shares with `before`."""
    old, new = before.lines, after.lines
    shared = 0
    while shared < min(len(old), len(new)) and old[shared] == new[shared]:
        shared += 1
    tail = 0
    while tail < min(len(old), len(new)) - shared and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return Rewritten(after, shared + 1, len(new) - tail)


def _only_place(text: Text, old: str, new: str, name: str) -> int:
    if not old:
        raise ToolFailed("`old_str` is empty: give the text to replace, or use `insert`.")
    if old == new:
        raise ToolFailed("`old_str` and `new_str` are the same: nothing would change.")
    places = _places(text.body, old)
    if not places:
        raise ToolFailed(f"`old_str` does not occur in `{name}`. {_hint(text, old)}")
    if len(places) > 1:
        lines = sorted({text.body.count("\n", 0, at) + 1 for at in places})
        more = " and more" if len(places) == _MOST_PLACES else ""
        raise ToolFailed(
            f"`old_str` occurs more than once in `{name}`, at lines "
            f"{', '.join(map(str, lines))}{more}: take more of the lines around it into `old_str`."
        )
    return places[0]


def _places(body: str, old: str) -> list[int]:
    """Where `old` starts, overlaps included: which of two overlapping ones is meant is unknown."""
    places: list[int] = []
    at = body.find(old)
    while at >= 0 and len(places) < _MOST_PLACES:
        places.append(at)
        at = body.find(old, at + 1)
    return places


def _hint(text: Text, old: str) -> str:
    at = text.body.find(old.strip()) if old.strip() else -1
    if at >= 0:
        line = text.body.count("\n", 0, at) + 1
        return f"Line {line} has it with other whitespace around: copy it exactly."
    if text.newline == "\n" and "\r\n" in text.body:
        return "The file mixes line ends, so `old_str` needs \\r\\n where the file has it."
    return "View the file and copy the text exactly, without the line numbers."
