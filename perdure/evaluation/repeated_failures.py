"""Failures that repeat, for which a batch pauses, and the advice that fits their cause."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import get_args

from perdure.evaluation.result import FailureKind

DEFAULT_PAUSE_AFTER = 10
"""Failures in a row after which a batch pauses, unless more samples run side by side."""

MAJORITY_FACTOR = 2
"""Attempts from which on a majority of failures pauses, as a multiple of the failures in a row."""

MENDABLE_KINDS: tuple[FailureKind, ...] = ("infrastructure", "configuration", "sample", "scorer")
"""The kinds that somebody can mend: a provider that refuses an agent's words is its outcome."""


@dataclass
class FailureCount:
    """The count of failures since a batch began or was resumed."""

    in_a_row: int = 0
    attempts: int = 0
    failures: int = 0

    def add(self, failed: bool) -> None:
        """Count one more attempt."""
        self.in_a_row = self.in_a_row + 1 if failed else 0
        self.attempts += 1
        self.failures += failed

    def describe_repetition(self, pause_after: int) -> str | None:
        """Say how often attempts have failed; None while that is no reason to pause."""
        if self.in_a_row >= pause_after:
            return f"{_count_attempts(self.in_a_row)} in a row failed"
        enough = self.attempts >= MAJORITY_FACTOR * pause_after
        if enough and 2 * self.failures > self.attempts:
            return f"{self.failures} of {_count_attempts(self.attempts)} failed"
        return None


def _count_attempts(count: int) -> str:
    return "1 attempt" if count == 1 else f"{count} attempts"


def resume_advice(kind: str | None, batch: str) -> str:
    """Say what to do about a batch that has paused for failures of this kind."""
    resume = f"`perdure batch resume {batch}`"
    if kind == "scorer":
        return (
            f"Mend the scorer, and then: {resume}. At its end, `perdure batch rescore {batch}` "
            "scores what failed; no agent runs again for that."
        )
    mend = "Mend what the set-up needs" if kind == "sample" else "Mend that"
    return (
        f"{mend}, and then: {resume}. At its end, `perdure batch retry {batch}` runs again what "
        "failed."
    )


def failure_advice(batch: str, kinds: Collection[str], missing: bool) -> str:
    """Say which command completes a batch that has ended: no more than is needed is paid again."""
    assert set(kinds) <= set(get_args(FailureKind))
    parts = []
    if "scorer" in kinds:
        parts.append(f"`perdure batch rescore {batch}` scores again without running an agent")
    if missing or set(kinds) - {"scorer"}:
        parts.append(f"`perdure batch retry {batch}` runs what is left")
    return ", and ".join(parts)
