"""What can go wrong for those who talk to conversations, by who can mend it."""

from typing import Self


class ClientError(Exception):
    """`str(error)` says what is wrong; `hint` says what to do.

    * Invalid: what was asked for makes no sense
    * NotFound: there is no such conversation
    * Conflict: not in the state that the conversation is in
    * TimedOut: nobody answered in time; the work goes on
    * Unreachable: Temporal or the store does not answer
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Invalid(ClientError):
    pass


class NotFound(ClientError):
    @classmethod
    def of(cls, conversation_id: str) -> Self:
        return cls(f"There is no conversation {conversation_id}.", "`perdure ls` lists them.")


class Conflict(ClientError):
    pass


class TimedOut(ClientError):
    pass


class Unreachable(ClientError):
    pass
