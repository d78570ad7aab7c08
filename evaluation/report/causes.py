"""Why attempts failed, each cause with an example."""

from collections.abc import Iterable
from dataclasses import dataclass

from evaluation.report import words
from evaluation.result import Failure, SampleResult

MOST = 100

OTHERS = "(others)"

LONGEST = 400
"""Characters of an example."""


@dataclass
class Cause:
    """`final` attempts count as failed; `repeated` ones were followed by another attempt."""

    kind: str
    code: str
    sample: str
    example: str
    final: int = 0
    repeated: int = 0


class Causes:
    """Those of all attempts that have come so far, of which there may be many."""

    def __init__(self) -> None:
        self._causes: dict[tuple[str, str], Cause] = {}

    def add(self, result: SampleResult) -> None:
        final = {(one.epoch, one.number) for one in result.final}
        for attempt in result.attempts:
            if attempt.failure is None:
                continue
            cause = self._cause(result.id, attempt.failure)
            if (attempt.epoch, attempt.number) in final:
                cause.final += 1
            else:
                cause.repeated += 1

    def all(self) -> Iterable[Cause]:
        """The most frequent first."""
        return sorted(
            self._causes.values(), key=lambda one: (-one.final, -one.repeated, one.kind, one.code)
        )

    def _cause(self, sample: str, failure: Failure) -> Cause:
        key = (failure.kind, words.shortened(failure.code, 100))
        if key not in self._causes and len(self._causes) >= MOST:
            key = (failure.kind, OTHERS)
        if key not in self._causes:
            example = words.shortened(failure.detail, LONGEST)
            self._causes[key] = Cause(*key, words.shortened(sample, 200), example)
        return self._causes[key]
