"""A scorer for answers with the same JSON value as the target."""

import json
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Literal

from pydantic import Field

from perdure.evaluation.sample import Sample
from perdure.evaluation.score import Score, ScoringError, TextScorer, require_targets

FENCE = "```"

MAX_DECODE_TRIES = 1000
"""The most brackets of an answer at which the decoder is tried."""


class JsonMatch(TextScorer):
    """A scorer that compares JSON values, numbers up to the relative `tolerance`.

    The answer's value is its whole text, the last fenced block with JSON, or the last object or
    array in the text. With `subset`, an object of the answer may have more keys than the target's.
    """

    kind: Literal["json"] = "json"
    tolerance: float = Field(default=1e-9, ge=0, lt=1)
    subset: bool = False

    def score(self, sample: Sample, text: str) -> Score:
        """Score the text. Raises ScoringError without a target, or with one that is no JSON."""
        targets = [_parse_target(sample, target) for target in require_targets(sample)]
        for value in find_values(text):
            correct = any(self._equal(value, target) for target in targets)
            return Score(value=correct, answer=json.dumps(value, ensure_ascii=False))
        return Score(value=False, explanation="There is no JSON in the answer.")

    def _equal(self, value: Any, target: Any) -> bool:
        if isinstance(value, bool) or isinstance(target, bool):
            return value is target
        match value, target:
            case int() | float(), int() | float():
                return _is_close(value, target, self.tolerance)
            case list(), list():
                return len(value) == len(target) and all(map(self._equal, value, target))
            case dict(), dict():
                same_keys = target.keys() <= value.keys() and (
                    self.subset or len(target) == len(value)
                )
                return same_keys and all(self._equal(value[key], target[key]) for key in target)
            case _:
                return bool(value == target)


def _is_close(first: float, second: float, tolerance: float) -> bool:
    try:
        return first == second or math.isclose(first, second, rel_tol=tolerance)
    except OverflowError:  # an integer that no float can hold
        return False


def find_values(text: str) -> Iterator[Any]:
    """Yield the candidate JSON values of a text, the likeliest first."""
    blocks = text.split(FENCE)[1::2]
    for candidate in (text, *(block.partition("\n")[2] for block in reversed(blocks))):
        with suppress(ValueError):
            yield _parse(candidate)
    yield from reversed(list(_embedded_values(text)))


def _embedded_values(text: str) -> Iterator[Any]:
    """Yield the outermost objects and arrays in a text."""
    position = 0
    for _ in range(MAX_DECODE_TRIES):
        bracket = _BRACKET.search(text, position)
        if bracket is None:
            return
        try:
            value, position = _DECODER.raw_decode(text, bracket.start())
        except (ValueError, RecursionError):
            position = bracket.end()
        else:
            yield value


def _parse_target(sample: Sample, text: str) -> Any:
    try:
        return _parse(text)
    except ValueError as error:
        raise ScoringError(f"A target of the sample {sample.id!r} is no JSON: {error}.") from error


def _parse(text: str) -> Any:
    try:
        return _DECODER.decode(text.strip())
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_BRACKET = re.compile(r"[{\[]")
_DECODER = json.JSONDecoder(parse_constant=_reject_constant)
