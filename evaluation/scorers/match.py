"""A regular expression finds the answer, or is the target itself."""

import importlib
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from evaluation.sample import Sample
from evaluation.score import Score, TextScorer, Unscorable, targets

Pattern: TypeAlias = Annotated[str, Field(min_length=1)]


class Match(TextScorer):
    """What the last match of `pattern` holds is the answer, and has to be one of the targets.

    A match is known by its first group that took part, or is taken whole where there is none. The
    last match counts because agents think aloud before they answer; `first` takes the first, as
    inspect_ai's `pattern` does. Without a `pattern` each target is one, and has to match somewhere.
    A pattern that takes over `seconds` leaves the attempt unscored.
    """

    kind: Literal["match"] = "match"
    pattern: Pattern | None = None
    ignore_case: bool = True
    first: bool = False
    seconds: float = Field(default=5.0, gt=0, le=60)

    def check(self) -> None:
        if self.pattern is not None:
            compiled(self.pattern)

    def score(self, sample: Sample, text: str) -> Score:
        """Raises Unscorable."""
        wanted = targets(sample)
        if self.pattern is None:
            found = [one for target in wanted for one in self._found(target, text)[:1]]
            return Score(value=bool(found), answer=found[0] if found else None)
        found = self._found(self.pattern, text)
        if not found:
            return Score(value=False, explanation=f"Nothing matches {self.pattern!r}.")
        answer = found[0 if self.first else -1].strip()
        return Score(value=self._plain(answer) in map(self._plain, wanted), answer=answer)

    def _plain(self, text: str) -> str:
        return text.strip().casefold() if self.ignore_case else text.strip()

    def _found(self, pattern: str, text: str) -> list[str]:
        return found(pattern, text, self.ignore_case, self.seconds)


def found(pattern: str, text: str, ignore_case: bool, seconds: float) -> list[str]:
    """Each match by its first group that took part, or whole. Raises Unscorable."""
    try:
        matches = list(compiled(pattern, ignore_case).finditer(text, timeout=seconds))
    except TimeoutError as error:
        raise Unscorable(
            f"The pattern {pattern[:100]!r} took over {seconds:g} seconds on an answer of "
            f"{len(text):,} characters: write it without repeats inside of repeats."
        ) from error
    except ValueError as error:
        raise Unscorable(str(error)) from error
    return [_held(one) for one in matches]


def _held(match: Any) -> str:
    return next((str(one) for one in match.groups() if one is not None), str(match[0]))


def compiled(pattern: str, ignore_case: bool = False) -> Any:
    """Raises ValueError."""
    # Unlike `re` it can be stopped: a pattern that never ends must not hold up a worker. Imported
    # late, as it asks for the locale, which a workflow that holds the spec of a batch may not.
    regex: Any = importlib.import_module("regex")
    flags = regex.MULTILINE | (regex.IGNORECASE if ignore_case else 0)
    try:
        return regex.compile(pattern, flags)
    except regex.error as error:
        raise ValueError(f"{pattern[:100]!r} is no regular expression: {error}") from error
