"""What `.gitignore` files say is not worth looking at."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.spot import Spot
from tools.searching.wildcards import Segment, matches, segments

LARGEST = 256 * 1024
"""Bytes of a `.gitignore` that are read."""

LONGEST = 1000
"""Characters of a line that is a rule: no path needs more, and a hostile one could take long."""

_ESCAPED = re.compile(r"\\(.)")


@dataclass(frozen=True)
class Rule:
    """One line: `pattern` is ignored, or with a `!` in front of it is not."""

    pattern: tuple[Segment, ...]
    ignores: bool
    folders_only: bool


@dataclass(frozen=True)
class Rules:
    """The lines of the `.gitignore` in the folder at `depth`; of those that match, the last counts.

    Sources: gitignore(5).
    """

    depth: int
    rules: tuple[Rule, ...]

    def verdict(self, names: Sequence[str], is_folder: bool) -> bool | None:
        """Whether the entry with these names below the walk's root is ignored; None: not said."""
        for rule in reversed(self.rules):
            if (is_folder or not rule.folders_only) and matches(rule.pattern, names[self.depth :]):
                return rule.ignores
        return None


def ignored(rules: Sequence[Rules], names: Sequence[str], is_folder: bool) -> bool:
    """Whether the files say so, the outermost first; the innermost that says anything counts."""
    verdicts = (one.verdict(names, is_folder) for one in reversed(rules))
    return next((verdict for verdict in verdicts if verdict is not None), False)


def rules_in(folder: Spot, depth: int) -> Rules | None:
    """The rules of the `.gitignore` in `folder`, which lies `depth` names below the walk's root."""
    file = Spot(folder.root, folder.path / ".gitignore")
    try:
        if not file.is_file():  # git follows no link either
            return None
        text = file.read(LARGEST)[1].decode(errors="replace")
    except OSError:  # what cannot be read rules nothing
        return None
    rules = [rule for line in text.split("\n") if (rule := _rule(line)) is not None]
    return Rules(depth, tuple(rules)) if rules else None


def _rule(line: str) -> Rule | None:
    text = line.removesuffix("\r").rstrip(" ")
    if text.endswith("\\"):
        text += " "  # the one that the backslash keeps
    if not text or text.startswith("#") or len(text) > LONGEST:
        return None
    ignores = not text.startswith("!")
    pattern = text.removeprefix("!").rstrip("/")
    names = [_unescaped(name) for name in pattern.split("/") if name]
    if not names:
        return None
    return Rule(segments(names if "/" in pattern else ["**", *names]), ignores, text.endswith("/"))


def _unescaped(name: str) -> str:
    """A backslash takes the meaning from the letter after it; for `fnmatch`, brackets do."""
    return _ESCAPED.sub(lambda found: f"[{found[1]}]" if found[1] in "*?[" else found[1], name)
