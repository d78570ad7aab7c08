"""Applying the hunks of a patch to a text.

Lines are looked for exactly, then with other whitespace at their end, then around them, and last
with plain quotes and dashes.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from tools.editing.patch import Hunk, PatchError
from tools.editing.text_file import lines_of

_MOST_QUOTED = 12
"""Lines of the patch and of the file that a complaint shows."""

_MOST_ALIKE = 100
"""Places of a line that a complaint looks at: some lines are everywhere."""

_PLAIN = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
    | dict.fromkeys("\u2018\u2019\u201a\u201b", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f", '"')
    | dict.fromkeys("\u00a0\u2002\u2003\u2009\u202f\u3000", " ")
)


def _as_it_is(line: str) -> str:
    return line


def _plain(line: str) -> str:
    return line.strip().translate(_PLAIN)


_VIEWS: tuple[Callable[[str], str], ...] = (_as_it_is, str.rstrip, str.strip, _plain)
"""How lines are compared, the strictest first."""


@dataclass(frozen=True)
class Patched:
    """A text after its hunks; `loose` are those that fitted only with other whitespace or signs."""

    body: str
    loose: tuple[int, ...] = ()


def patched(body: str, hunks: Sequence[Hunk], name: str) -> Patched:
    """The text, called `name`, with the hunks applied in order. Raises PatchError.

    Lines that stay are taken from the text, not from the patch. A text without a newline at its
    end stays without one.
    """
    lines = lines_of(body)
    made: list[str] = []
    loose: list[int] = []
    at = 0
    anchors: tuple[str, ...] = ()
    for nth, hunk in enumerate(hunks, 1):
        whose = f"Hunk {nth} of `{name}` (line {hunk.line} of the patch)"
        start = at if hunk.anchors == anchors else _behind(lines, hunk.anchors, at, whose)
        place, view = _place(lines, hunk, start, whose)
        made.extend(lines[at:place])
        at = _append(made, lines, hunk, place)
        loose.extend([nth] if view else [])
        anchors = hunk.anchors
    made.extend(lines[at:])
    ended = not body or body.endswith("\n")
    return Patched("\n".join(made) + ("\n" if made and ended else ""), tuple(loose))


def _append(made: list[str], lines: Sequence[str], hunk: Hunk, place: int) -> int:
    """Put what the hunk makes of the lines at `place`, and tell where it ends."""
    for sign, text in hunk.lines:
        if sign == "+":
            made.append(text)
            continue
        if sign == " ":
            made.append(lines[place])
        place += 1
    return place


def _behind(lines: Sequence[str], anchors: Sequence[str], at: int, whose: str) -> int:
    """Where to begin looking: behind the anchors, or at once where an anchor was passed before."""
    for anchor in anchors:
        found = _anchored(lines, anchor, at)
        if found is not None:
            at = found + 1
        elif _anchored(lines, anchor, 0) is None:
            raise PatchError(
                f"{whose} does not fit: the file has no line {anchor.strip()!r}, as its `@@` says."
            )
    return at


def _anchored(lines: Sequence[str], anchor: str, start: int) -> int | None:
    """The first line from `start` on that is the anchor, or else has it in it."""
    if (found := _find(lines, [anchor], start)) is not None:
        return found[0]
    wanted = anchor.strip()
    return next((at for at in range(start, len(lines)) if wanted in lines[at]), None)


def _place(lines: Sequence[str], hunk: Hunk, start: int, whose: str) -> tuple[int, int]:
    """Where the hunk's old lines are, and by which view they were found."""
    old = hunk.old
    if not old:
        return (start if hunk.anchors and not hunk.at_end else len(lines)), 0
    last = len(lines) - len(old)
    found = _find(lines, old, last) if hunk.at_end and last >= start else None
    found = found or _find(lines, old, start)
    if found is None:
        raise PatchError(f"{whose} does not fit: {_misfit(lines, old, start)}")
    return found


def _find(lines: Sequence[str], wanted: Sequence[str], start: int) -> tuple[int, int] | None:
    """The first place from `start` on where the lines are, by the strictest view that has one.

    Each line stands as one character, as searching in a text takes no longer than it is.
    """
    for number, view in enumerate(_VIEWS):
        sought = [view(line) for line in wanted]
        signs = {line: chr(nth) for nth, line in enumerate(dict.fromkeys(sought), 1)}
        seen = "".join(signs.get(view(line), "\0") for line in islice(lines, start, None))
        if (at := seen.find("".join(signs[line] for line in sought))) >= 0:
            return start + at, number
    return None


def _misfit(lines: Sequence[str], old: Sequence[str], start: int) -> str:
    quoted = "\n".join([*old[:_MOST_QUOTED], *(["..."] if len(old) > _MOST_QUOTED else [])])
    behind = f" after line {start}" if start else ""
    if (earlier := _find(lines, old, 0)) is not None:
        return (
            f"its lines are at line {earlier[0] + 1}, but not{behind}, where the hunk before it "
            f"ends: put the hunks in the order of the file, and let none overlap:\n{quoted}"
        )
    return f"these lines are not in the file{behind}:\n{quoted}\n{_nearest(lines, old)}"


def _nearest(lines: Sequence[str], old: Sequence[str]) -> str:
    """The part of the file that has most of the lines in their places."""
    sought = [line.strip() for line in old]
    places: dict[str, list[int]] = {line: [] for line in sought if line}
    for at, line in enumerate(lines):
        if (found := places.get(line.strip())) is not None and len(found) < _MOST_ALIKE:
            found.append(at)
    alike = Counter(
        at - offset
        for offset, line in enumerate(sought)
        for at in places.get(line, ())
        if at >= offset
    )
    if not alike:
        return "The file has none of them: view it, and copy its lines exactly."
    best = max(alike, key=lambda at: (alike[at], -at))
    part = lines[best : best + min(len(old), _MOST_QUOTED)]
    rows = (f"{number:6}\t{line}" for number, line in enumerate(part, best + 1))
    return "The most like them in it are:\n" + "\n".join(rows)
