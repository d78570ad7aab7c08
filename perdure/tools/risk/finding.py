"""The finding of a rule, and text of which parts are not known before it is run.

Such a part is one character of Unicode's private use area, which tells where the part comes from.
It travels with the text through variables, pipes and nested shells.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from perdure.agent.policies import RISK_LEVELS
from perdure.events.risk import Risk

UNKNOWN = "\ue000"
NETWORK = "\ue001"
"""An answer of the network."""
DECODED = "\ue002"
"""Text that is unreadable before the run."""
SECRET = "\ue003"
"""Credentials, or the environment, which may hold some."""
BREAK = "\ue005"
"""The end of a word in a text of several words."""
HOME = "/\ue004"
"""The home directory, as a path."""
HOLES = (NETWORK, DECODED, SECRET, UNKNOWN)
"""The marks of unknown parts, the worst first."""
MAX_SHOWN_CHARACTERS = 80

_PRIVATE = dict.fromkeys(range(0xE000, 0xE020), "�")
_LEGIBLE = str.maketrans({**dict.fromkeys(HOLES, "…"), BREAK: " "})


@dataclass(frozen=True)
class Finding:
    """A risk, and a sentence that says why for the person who is asked."""

    risk: Risk
    why: str


HARMLESS = Finding("LOW", "No rule finds a danger in it.")


def high(why: str) -> Finding:
    return Finding("HIGH", why)


def medium(why: str) -> Finding:
    return Finding("MEDIUM", why)


def worst(findings: Iterable[Finding]) -> Finding:
    """Return the first finding of the highest risk."""
    return max((HARMLESS, *findings), key=lambda finding: RISK_LEVELS.index(finding.risk))


def escape_marks(text: str) -> str:
    """Replace what a stranger's text has of our marks, and drop NULs as shells do."""
    return text.translate(_PRIVATE).replace("\0", "")


def drop_holes(text: str) -> str:
    return text.translate(dict.fromkeys(map(ord, (*HOLES, BREAK))))


def worst_mark(text: str) -> str:
    """Return the worst mark in `text`, or an empty string."""
    return next((mark for mark in HOLES if mark in text), "")


def legible(text: str) -> str:
    """Shorten `text` for a sentence, with `…` for unknown parts."""
    text = " ".join(text.replace(HOME, "~").translate(_LEGIBLE).split())
    cut = MAX_SHOWN_CHARACTERS - 1
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:cut]}…"
