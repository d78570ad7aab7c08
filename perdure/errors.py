"""Errors for programs and people that use conversations and batches."""

from typing import Self

from perdure.wording import shorten


class PerdureError(Exception):
    """The base class of all errors that perdure raises on purpose."""


class ClientError(PerdureError):
    """An error that the caller can act on: `str(error)` says what is wrong, `hint` what to do.

    A traceback shows both.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        if hint:
            self.add_note(hint)


class Invalid(ClientError):
    """The request or a setting makes no sense."""


class MissingExtra(Invalid):
    """An optional dependency is not installed; the message has the command that installs it."""

    def __init__(self, purpose: str, extra: str, alternative: str = "") -> None:
        super().__init__(f"{purpose} needs `pip install 'perdure[{extra}]'`.", alternative)


class NotFound(ClientError):
    """The conversation, batch or discussion does not exist."""

    @classmethod
    def for_conversation(cls, conversation_id: str) -> Self:
        return cls(
            f"There is no conversation {shorten(conversation_id)}.", "`perdure ls` lists them."
        )

    @classmethod
    def for_batch(cls, name: str) -> Self:
        return cls(f"There is no batch {shorten(name)}.", "`perdure batch status` lists them.")

    @classmethod
    def for_discussion(cls, session_id: str) -> Self:
        return cls(
            f"There is no discussion {shorten(session_id)}.", "`perdure discuss` starts one."
        )


class Forbidden(ClientError):
    """The user of the client may see the conversation, batch or discussion, and not do that."""


class Conflict(ClientError):
    """The state of the conversation, batch or discussion forbids the request."""


class TimedOut(ClientError):
    """The answer did not come in time; the work goes on."""


class Unreachable(ClientError):
    """Temporal, or the gateway, does not answer."""
