"""A scorer for answers equal to the target, up to insignificant differences."""

import math
import re
import string
from typing import Literal

from perdure.evaluation.sample import Sample
from perdure.evaluation.score import Score, TextScorer, require_targets

ARTICLES = {"a", "an", "the"}

NON_NUMERIC_PUNCTUATION = "".join(mark for mark in string.punctuation if mark not in "+-.")
"""The punctuation with which a number cannot begin."""

THOUSANDS_SEPARATED = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?")


class Exact(TextScorer):
    """A scorer that compares `normalize` of both; with `strict` it only strips white space.

    A target of which nothing is left after `normalize`, such as the choice "A", is compared without
    case. The rules are those of SQuAD's evaluation (Rajpurkar et al. 2016, 6.1), with numbers by
    value; inspect_ai's scorer of this name has them too.
    """

    kind: Literal["exact"] = "exact"
    strict: bool = False

    def score(self, sample: Sample, text: str) -> Score:
        correct = any(self._equal(text, target) for target in require_targets(sample))
        return Score(value=correct, answer=text.strip())

    def _equal(self, text: str, target: str) -> bool:
        if self.strict:
            return text.strip() == target.strip()
        # "A" and "-" normalize to nothing, and so would equal an empty answer.
        simplify = normalize if normalize(target) else _casefold
        return simplify(text) == simplify(target)


def _casefold(text: str) -> str:
    return text.strip().casefold()


def normalize(text: str) -> str:
    """Drop case, punctuation and articles, and write each number in its canonical form.

    Hyphens separate words, and 1,000 is a number.
    """
    words = (word for token in text.casefold().split() for word in _split_words(token))
    return " ".join(word for word in words if word and word not in ARTICLES)


def _split_words(token: str) -> list[str]:
    stripped = token.rstrip(string.punctuation).lstrip(NON_NUMERIC_PUNCTUATION)
    for candidate in (stripped, stripped.lstrip(".")):
        if (value := canonical_number(candidate)) is not None:
            return [value]
    if "-" in token.strip("-"):
        return [word for part in token.split("-") for word in _split_words(part)]
    return ["".join(character for character in token if character not in string.punctuation)]


def canonical_number(word: str) -> str | None:
    """Format a number so that 5, 5.0 and 5e0 are equal; None for a word."""
    if not any(character.isdigit() for character in word):
        return None
    try:
        value = float(word.replace(",", "") if THOUSANDS_SEPARATED.fullmatch(word) else word)
    except ValueError:
        return None
    return repr(value + 0.0) if math.isfinite(value) else None  # the sum turns -0.0 into 0.0
