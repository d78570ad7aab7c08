"""A trouble: the reason why a conversation does not progress, with what to do about it."""

from typing import NamedTuple

from perdure.errors import Unreachable

ENDED_CAUSE, FAILED_CAUSE = "ended", "failed"
"""The causes for closed workflows; ENDED_CAUSE is no trouble for a conversation at rest."""


class Trouble(NamedTuple):
    """A reason why a conversation does not progress."""

    cause: str
    """Stays the same as long as the trouble lasts, while the sentence may change."""
    sentence: str
    slow: bool = False
    """The conversation takes long, and may still progress by itself."""

    @property
    def is_over(self) -> bool:
        """Tell whether the workflow is closed, until a signal starts it again."""
        return self.cause in (ENDED_CAUSE, FAILED_CAUSE)


def temporal_unreachable(error: Unreachable) -> Trouble:
    return Trouble("temporal", f"{as_sentence(str(error))} It goes on by itself when that does.")


def as_sentence(text: str) -> str:
    return f"{text.rstrip().rstrip('.')}."
