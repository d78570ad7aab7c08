"""Applying the hunks of a patch to a text.

Lines are matched exactly first, then without trailing whitespace, then without any surrounding
whitespace, and last with typographic quotes and dashes normalized.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from perdure.tools.editing.patch import Hunk, PatchError
from perdure.tools.editing.text_file import split_lines

_MAX_QUOTED_LINES = 12
"""Lines of the patch and of the file that an error shows."""
_MAX_POSITIONS = 100
"""Positions of a line that an error considers: some lines are everywhere."""

_PUNCTUATION = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
    | dict.fromkeys("\u2018\u2019\u201a\u201b", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f", '"')
    | dict.fromkeys("\u00a0\u2002\u2003\u2009\u202f\u3000", " ")
)


def _normalize_punctuation(line: str) -> str:
    return line.strip().translate(_PUNCTUATION)


_NORMALIZERS: list[Callable[[str], str]] = [str, str.rstrip, str.strip, _normalize_punctuation]
"""Functions that normalize lines for comparison, the strictest first."""


@dataclass(frozen=True)
class PatchResult:
    """The text after all hunks, and the numbers of the hunks that did not match exactly."""

    body: str
    inexact_hunks: tuple[int, ...] = ()


def apply_hunks(body: str, hunks: Sequence[Hunk], name: str) -> PatchResult:
    """Apply the hunks in order to the text, which errors call `name`. Raises PatchError.

    Unchanged lines are taken from the text, not from the patch. A text without a final newline
    stays without one.
    """
    lines = split_lines(body)
    result: list[str] = []
    inexact_hunks: list[int] = []
    end = 0
    anchors: tuple[str, ...] = ()
    for number, hunk in enumerate(hunks, 1):
        label = f"Hunk {number} of `{name}` (line {hunk.line} of the patch)"
        start = end if hunk.anchors == anchors else _skip_anchors(lines, hunk.anchors, end, label)
        position, normalizer = _locate_hunk(lines, hunk, start, label)
        result.extend(lines[end:position])
        end = _append_hunk(result, lines, hunk, position)
        inexact_hunks.extend([number] if normalizer else [])
        anchors = hunk.anchors
    result.extend(lines[end:])
    final = "\n" if result and (not body or body.endswith("\n")) else ""
    return PatchResult("\n".join(result) + final, tuple(inexact_hunks))


def _append_hunk(result: list[str], lines: Sequence[str], hunk: Hunk, position: int) -> int:
    """Append the hunk's new lines to `result`; return the position after its old lines."""
    for sign, text in hunk.lines:
        if sign == "+":
            result.append(text)
            continue
        if sign == " ":
            result.append(lines[position])
        position += 1
    return position


def _skip_anchors(lines: Sequence[str], anchors: Sequence[str], start: int, label: str) -> int:
    """Return the position after the anchors; one that is before `start` is skipped."""
    for anchor in anchors:
        position = _find_anchor(lines, anchor, start)
        if position is not None:
            start = position + 1
        elif _find_anchor(lines, anchor, 0) is None:
            raise PatchError(
                f"{label} does not fit: the file has no line {anchor.strip()!r}, as its `@@` says."
            )
    return start


def _find_anchor(lines: Sequence[str], anchor: str, start: int) -> int | None:
    """Find the first line from `start` on that equals the anchor, or else contains it."""
    if (match := _find_lines(lines, [anchor], start)) is not None:
        return match[0]
    text = anchor.strip()
    return next((at for at in range(start, len(lines)) if text in lines[at]), None)


def _locate_hunk(lines: Sequence[str], hunk: Hunk, start: int, label: str) -> tuple[int, int]:
    """Return the position of the hunk's old lines, and the index of the matching normalizer."""
    old = hunk.old
    if not old:
        return (start if hunk.anchors and not hunk.at_end else len(lines)), 0
    last = len(lines) - len(old)
    match = _find_lines(lines, old, last) if hunk.at_end and last >= start else None
    match = match or _find_lines(lines, old, start)
    if match is None:
        raise PatchError(f"{label} does not fit: {_explain_mismatch(lines, old, start)}")
    return match


def _find_lines(lines: Sequence[str], pattern: Sequence[str], start: int) -> tuple[int, int] | None:
    """Find the lines from `start` on, by the strictest normalizer: a line becomes a character."""
    for number, normalize in enumerate(_NORMALIZERS):
        normalized = [normalize(line) for line in pattern]
        characters = {line: chr(nth) for nth, line in enumerate(dict.fromkeys(normalized), 1)}
        text = "".join(characters.get(normalize(line), "\0") for line in islice(lines, start, None))
        if (at := text.find("".join(characters[line] for line in normalized))) >= 0:
            return start + at, number
    return None


def _explain_mismatch(lines: Sequence[str], old: Sequence[str], start: int) -> str:
    rest = ["..."] if len(old) > _MAX_QUOTED_LINES else []
    quoted = "\n".join([*old[:_MAX_QUOTED_LINES], *rest])
    behind = f" after line {start}" if start else ""
    if (earlier := _find_lines(lines, old, 0)) is not None:
        return (
            f"its lines are at line {earlier[0] + 1}, but not{behind}, where the hunk before it "
            f"ends: put the hunks in the order of the file, and let none overlap:\n{quoted}"
        )
    return f"these lines are not in the file{behind}:\n{quoted}\n{_find_closest_lines(lines, old)}"


def _find_closest_lines(lines: Sequence[str], old: Sequence[str]) -> str:
    old_lines = [line.strip() for line in old]
    positions: defaultdict[str, list[int]] = defaultdict(list)
    for at, line in enumerate(lines):
        positions[line.strip()].append(at)
    matches = Counter(
        at - offset
        for offset, line in enumerate(old_lines)
        for at in positions.get(line, [])[:_MAX_POSITIONS]
        if line and at >= offset
    )
    if not matches:
        return "The file has none of them: view it, and copy its lines exactly."
    best = max(matches, key=lambda at: (matches[at], -at))
    part = lines[best : best + min(len(old), _MAX_QUOTED_LINES)]
    rows = (f"{number:6}\t{line}" for number, line in enumerate(part, best + 1))
    return "The most like them in it are:\n" + "\n".join(rows)
