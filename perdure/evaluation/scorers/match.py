"""A scorer by a regular expression that finds the answer, or is the target itself."""

import importlib
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from perdure.evaluation.sample import Sample
from perdure.evaluation.score import Score, ScoringError, TextScorer, require_targets

Pattern: TypeAlias = Annotated[str, Field(min_length=1)]


class Match(TextScorer):
    """A scorer that compares the last match of `pattern` with the targets.

    The first group that took part is compared, or else the whole match. The last match counts
    because agents reason before they answer; `first` takes the first, as inspect_ai's `pattern`
    does. Without a `pattern` each target is a pattern that may match anywhere. A pattern that takes
    over `seconds` leaves the attempt unscored.
    """

    kind: Literal["match"] = "match"
    pattern: Pattern | None = None
    ignore_case: bool = True
    first: bool = False
    seconds: float = Field(default=5.0, gt=0, le=60)

    def check(self) -> None:
        if self.pattern is not None:
            compile_pattern(self.pattern)

    def score(self, sample: Sample, text: str) -> Score:
        """Score the text. Raises ScoringError without a target, or for a pattern that fails."""
        targets = require_targets(sample)
        if self.pattern is None:
            matches = [match for target in targets for match in self._find(target, text)[:1]]
            return Score(value=bool(matches), answer=matches[0] if matches else None)
        matches = self._find(self.pattern, text)
        if not matches:
            return Score(value=False, explanation=f"Nothing matches {self.pattern!r}.")
        answer = matches[0 if self.first else -1].strip()
        return Score(value=self._normalize(answer) in map(self._normalize, targets), answer=answer)

    def _normalize(self, text: str) -> str:
        return text.strip().casefold() if self.ignore_case else text.strip()

    def _find(self, pattern: str, text: str) -> list[str]:
        return find_matches(pattern, text, self.ignore_case, self.seconds)


def find_matches(pattern: str, text: str, ignore_case: bool, seconds: float) -> list[str]:
    """Find all matches; each is its first group that took part, or the whole match.

    Raises ScoringError if the pattern is invalid or takes over `seconds`.
    """
    try:
        matches = list(compile_pattern(pattern, ignore_case).finditer(text, timeout=seconds))
    except TimeoutError as error:
        raise ScoringError(
            f"The pattern {pattern[:100]!r} took over {seconds:g} seconds on an answer of "
            f"{len(text):,} characters: write it without repeats inside of repeats."
        ) from error
    except ValueError as error:
        raise ScoringError(str(error)) from error
    return list(map(_captured_text, matches))


def _captured_text(match: Any) -> str:
    return next((str(group) for group in match.groups() if group is not None), str(match[0]))


def compile_pattern(pattern: str, ignore_case: bool = False) -> Any:
    """Compile a pattern. Raises ValueError if it is invalid."""
    # Unlike `re`, `regex` has timeouts: a pattern must not block a worker for ever. It is imported
    # late because it reads the locale, which is forbidden in workflows, and they parse batch specs.
    regex: Any = importlib.import_module("regex")
    flags = regex.MULTILINE | (regex.IGNORECASE if ignore_case else 0)
    try:
        return regex.compile(pattern, flags)
    except regex.error as error:
        raise ValueError(f"{pattern[:100]!r} is no regular expression: {error}") from error
