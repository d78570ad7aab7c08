"""The answer holds the same JSON value as the target, however it is written."""

import json
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from evaluation.sample import Sample
from evaluation.score import Score, TextScorer, Unscorable, close, targets

FENCE = "```"

MOST_TRIED = 1000
"""Brackets at which a value may begin: each is a try, and an answer may have any number."""


class Json(TextScorer):
    """Objects are equal in any order of their keys, numbers up to a part of `tolerance`.

    The value is the whole answer, or the last fenced block that is one, or the last object or array
    in the text. With `subset`, an object of the answer may have keys that the target's has not.
    """

    kind: Literal["json"] = "json"
    tolerance: float = Field(default=1e-9, ge=0, lt=1)
    subset: bool = False

    def score(self, sample: Sample, text: str) -> Score:
        """Raises Unscorable where the target itself is no JSON."""
        wanted = [_target(sample, one) for one in targets(sample)]
        for value in values(text):
            right = any(self._same(value, one) for one in wanted)
            return Score(value=right, answer=json.dumps(value, ensure_ascii=False))
        return Score(value=False, explanation="There is no JSON in the answer.")

    def _same(self, value: Any, target: Any) -> bool:
        if isinstance(value, bool) or isinstance(target, bool):
            return value is target
        match value, target:
            case int() | float(), int() | float():
                return close(value, target, self.tolerance)
            case list(), list():
                same = len(value) == len(target)
                return same and all(map(self._same, value, target))
            case dict(), dict():
                keys = (
                    target.keys() <= value.keys() if self.subset else target.keys() == value.keys()
                )
                return keys and all(self._same(value[key], target[key]) for key in target)
            case _:
                return bool(value == target)


def values(text: str) -> Iterator[Any]:
    """The JSON values that may be meant, the likeliest first."""
    blocks = text.split(FENCE)[1::2]
    for candidate in (text, *(block.partition("\n")[2] for block in reversed(blocks))):
        try:
            yield _parsed(candidate)
        except ValueError:
            continue
    yield from reversed(list(_within(text)))


def _within(text: str) -> Iterator[Any]:
    """The objects and arrays in a text, none inside another."""
    at, tries = 0, 0
    while tries < MOST_TRIED:
        starts = [start for one in "{[" if (start := text.find(one, at)) >= 0]
        if not starts:
            return
        at, tries = min(starts), tries + 1
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
        else:
            yield value


def _target(sample: Sample, text: str) -> Any:
    try:
        return _parsed(text)
    except ValueError as error:
        raise Unscorable(f"A target of the sample {sample.id!r} is no JSON: {error}.") from error


def _parsed(text: str) -> Any:
    """Raises ValueError."""
    try:
        return _DECODER.decode(text.strip())
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_constant)
