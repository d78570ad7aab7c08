"""The fork of a conversation, as the client that made it has it."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from perdure.agent.loop.state import State

HandleT_co = TypeVar("HandleT_co", covariant=True)


@dataclass(frozen=True)
class Fork(Generic[HandleT_co]):
    """A new conversation that shares its parent's events up to slot `at`.

    Its workflow starts with the first message, or with `resume`.
    """

    conversation: HandleT_co
    at: int
    state: State
