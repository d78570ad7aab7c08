"""The responses about what a conversation waits for, and what is in its way."""

from perdure.events.base import Tolerant


class Trouble(Tolerant):
    """A reason why a conversation does not progress."""

    cause: str
    """Stays the same as long as the trouble lasts, while the sentence may change."""
    sentence: str
    slow: bool = False
    """The conversation takes long, and may still progress by itself."""


class Diagnosis(Tolerant):
    """`GET …/trouble`: what keeps a conversation from going on; nothing if it progresses."""

    trouble: Trouble | None = None


class News(Tolerant):
    """`GET …/news?next_seq=N`: whether more is to be recorded than the slots before N.

    A message that Temporal has taken is news until it is in the log. None if nobody can tell.
    """

    has_news: bool | None
    has_workflow: bool = True
    """Whether Temporal knows the workflow: a conversation at rest, such as a fork, needs none."""
