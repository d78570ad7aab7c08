"""Patterns of paths: `*.py`, `src/**/test_?.{js,ts}`.

No pattern takes long on any path, however hostile: segments are matched by `fnmatch`, which does
not backtrack, and `**` by a walk over the segments.
"""

import fnmatch
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

Segment: TypeAlias = re.Pattern[str] | None
"""What one name of a path must match; None is `**`, any number of names."""

MOST = 256
"""Alternatives that braces may make."""

LONGEST = 1000
"""Characters of a pattern."""


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a path, relative and with `/` between its names, matches `pattern`.

    `*`, `?` and `[...]` stay within a name, `**` is any number of directories, `{a,b}` is either.
    A pattern without `/` matches a name at any depth. Raises ValueError with a sentence.
    """
    if ".." in pattern.split("/"):
        raise ValueError(
            f"The pattern {pattern!r} must not hold `..`: say where to look by `path`."
        )
    if len(pattern) > LONGEST:
        raise ValueError(f"The pattern has {len(pattern):,} characters: use at most {LONGEST:,}.")
    alternatives = [_compiled(one) for one in expanded(pattern)]
    return lambda path: any(matches(one, path.split("/")) for one in alternatives)


def expanded(pattern: str) -> list[str]:
    """The patterns without braces that `pattern` stands for; braces without a comma are letters.

    Raises ValueError where there are too many.
    """
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        if len(done) + len(waiting) > MOST:
            raise ValueError(
                f"The pattern {pattern!r} has too many alternatives: use fewer braces."
            )
        one = waiting.pop()
        group = min(_groups(one), default=None)
        if group is None:
            done.append(one)
            continue
        start, end, choices = group
        waiting.extend(one[:start] + choice + one[end:] for choice in reversed(choices))
    return done


def _groups(pattern: str) -> Iterator[tuple[int, int, list[str]]]:
    """Each `{...}` that offers a choice: where it starts and ends, and its alternatives."""
    commas: list[list[int]] = []  # of each brace that is open, its own place first
    for at, letter in enumerate(pattern):
        if letter == "{":
            commas.append([at])
        elif letter == "," and commas:
            commas[-1].append(at)
        elif letter == "}" and commas:
            places = [*commas.pop(), at]
            if len(places) > 2:
                choices = [pattern[one + 1 : next_] for one, next_ in pairwise(places)]
                yield places[0], at + 1, choices


def _compiled(pattern: str) -> tuple[Segment, ...]:
    names = [name for name in pattern.split("/") if name not in ("", ".")]
    return segments(names if "/" in pattern else ["**", *names])


def segments(names: Sequence[str]) -> tuple[Segment, ...]:
    """The pattern of these names; `**` at its end is all that lies below, not the place itself."""
    named = [*names, "*"] if names and names[-1] == "**" else names
    return tuple(None if name == "**" else re.compile(fnmatch.translate(name)) for name in named)


def matches(pattern: Sequence[Segment], names: Sequence[str]) -> bool:
    """Whether all of the names match all of the pattern."""
    at = _beyond(pattern, {0})
    for name in names:
        at = _beyond(pattern, {after for place in at for after in _after(pattern, place, name)})
    return len(pattern) in at


def _after(pattern: Sequence[Segment], place: int, name: str) -> tuple[int, ...]:
    """Where in the pattern one name leads from a place."""
    if place == len(pattern):
        return ()
    wanted = pattern[place]
    if wanted is None:
        return (place,)
    return (place + 1,) if wanted.match(name) else ()


def _beyond(pattern: Sequence[Segment], places: set[int]) -> set[int]:
    """The places, and those behind each `**`, which may stand for no name at all."""
    reached = set(places)
    for place in sorted(places):
        while place < len(pattern) and pattern[place] is None:
            place += 1
            reached.add(place)
    return reached
