"""What a tool is: what the model is told, how its arguments are read, what it does."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from events.actions import Action
from events.content import ToolDefinition
from events.observations import Observation
from sandbox.sandbox import NONE, Sandbox
from storage.log import EventLog
from tools.secrets.registry import NOTHING, Lent


class ToolFailed(Exception):
    """What a tool raises to tell the model why it could not do what was asked.

    Its text is written for the model: what is wrong and what to do. Any other exception is a
    failure of this call as well, in whatever words it has.
    """


@dataclass(frozen=True)
class Context:
    """Where a tool call happens.

    `seq` is the slot of the action in `log`; `progress` takes the newest output, for those who
    watch; `keep` stores bytes too long for an event and gives back the key to mention. Of
    `secrets`, a command gets those that it names. What a tool runs, it runs in `sandbox`, and by
    `network` with or without one.
    A tool that is cancelled (`asyncio.CancelledError`) ends every process it started.
    """

    conversation_id: str
    action_id: str
    seq: int
    workspace: Path
    log: EventLog
    progress: Callable[[str], None]
    keep: Callable[[bytes], Awaitable[str]]
    secrets: Lent = NOTHING
    sandbox: Sandbox = NONE
    network: bool = True


def unknown(action: Any) -> None:
    """What most tools can say of what they touch."""


@dataclass(frozen=True)
class Tool:
    """Something an agent may do.

    `parse` turns the model's decoded arguments into an action, and raises ValueError with a
    sentence for the model where they do not fit. `run` does it; what it raises is told to the
    model as a failure of this call. `touches` names what an action reads or changes, such as
    `file:src/main.py`: actions that touch different things may run side by side.
    """

    definition: ToolDefinition
    parse: Callable[[dict[str, Any]], Action]
    run: Callable[[Any, Context], Awaitable[Observation]]
    touches: Callable[[Any], tuple[str, ...] | None] = unknown

    @property
    def name(self) -> str:
        return self.definition.name
