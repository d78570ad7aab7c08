"""The answer is the target, but for what nobody would call a difference."""

import math
import re
import string
from typing import Literal

from evaluation.sample import Sample
from evaluation.score import Score, TextScorer, targets

ARTICLES = {"a", "an", "the"}

OPENING = "".join(one for one in string.punctuation if one not in "+-.")
"""What a number cannot begin with."""

THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?")


class Exact(TextScorer):
    """Compares what `normalized` leaves of both; with `strict` only space at the ends is ignored.

    So it is, but for case, where nothing is left of a target: "A" may be the right choice.
    The rules are those of SQuAD's evaluation (Rajpurkar et al. 2016, 6.1), with numbers by value;
    inspect_ai's scorer of this name has them too.
    """

    kind: Literal["exact"] = "exact"
    strict: bool = False

    def score(self, sample: Sample, text: str) -> Score:
        """Raises Unscorable."""
        right = any(self._same(text, target) for target in targets(sample))
        return Score(value=right, answer=text.strip())

    def _same(self, text: str, target: str) -> bool:
        if self.strict:
            return text.strip() == target.strip()
        # "A" and "-", of which nothing is left, would be met by an answer that says nothing.
        plain = normalized if normalized(target) else _uncased
        return plain(text) == plain(target)


def _uncased(text: str) -> str:
    return text.strip().casefold()


def normalized(text: str) -> str:
    """The words without case, punctuation and articles, each number by its value.

    Hyphens part words, and 1,000 is a number.
    """
    words = (word for token in text.casefold().split() for word in _words(token))
    return " ".join(word for word in words if word and word not in ARTICLES)


def _words(token: str) -> list[str]:
    edged = token.rstrip(string.punctuation).lstrip(OPENING)
    for candidate in (edged, edged.lstrip(".")):
        if (value := numeral(candidate)) is not None:
            return [value]
    if "-" in token.strip("-"):
        return [word for part in token.split("-") for word in _words(part)]
    return ["".join(one for one in token if one not in string.punctuation)]


def numeral(word: str) -> str | None:
    """A number as it is always written, so that 5, 5.0 and 5e0 are one; None for a word."""
    if not any(one.isdigit() for one in word):
        return None
    try:
        value = float(word.replace(",", "") if THOUSANDS.fullmatch(word) else word)
    except ValueError:
        return None
    return repr(value + 0.0) if math.isfinite(value) else None  # the sum turns -0.0 into 0.0
