"""Text of which a part is not known.

A part that only the run would show is one character of Unicode's private use area, which tells
where it comes from. So a word, a script or a file stays a plain string, and a mark travels with it
through assignments, pipes and nested shells.
"""

UNKNOWN = "\ue000"
NETWORK = "\ue001"
"""What the network answered."""
DECODED = "\ue002"
"""What was made unreadable, and is turned back only by the run."""
SECRET = "\ue003"
"""Credentials, or the environment that may hold some."""
BREAK = "\ue005"
"""Where one word ends and the next begins, in the elements of an array."""

HOME = "/\ue004"
"""The home directory, as a path."""

HOLES = (UNKNOWN, NETWORK, DECODED, SECRET)
LONGEST_SHOWN = 80
"""Characters of a path or a word in a sentence."""

_PRIVATE = dict.fromkeys(range(0xE000, 0xE020), "�")
_FILLED = str.maketrans(dict.fromkeys((*HOLES, BREAK), ""))
_LEGIBLE = str.maketrans({**dict.fromkeys(HOLES, "…"), BREAK: " "})


def unmarked(text: str) -> str:
    """Text from outside, in which nothing can be taken for a mark; shells drop NULs as well."""
    return text.translate(_PRIVATE).replace("\0", "")


def is_known(text: str) -> bool:
    return not any(hole in text for hole in HOLES)


def without_holes(text: str) -> str:
    return text.translate(_FILLED)


def origin(text: str) -> str:
    """The worst mark in `text`, or nothing."""
    return next((mark for mark in (NETWORK, DECODED, SECRET, UNKNOWN) if mark in text), "")


def shown(text: str) -> str:
    """For a person to read: `~` for the home directory, `…` for what is not known."""
    legible = " ".join(text.replace(HOME, "~").translate(_LEGIBLE).split())
    return legible if len(legible) <= LONGEST_SHOWN else f"{legible[: LONGEST_SHOWN - 1]}…"
