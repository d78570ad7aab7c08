"""The interface of a tool: its definition, its parser and its function."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from perdure.events.content import ToolDefinition
from perdure.events.custom import AnyAction, AnyObservation
from perdure.memory.agent_memory import AgentMemory
from perdure.sandbox.sandbox import UNCONFINED, Sandbox
from perdure.secrets.registry import NO_LENT_SECRETS, LentSecrets
from perdure.storage.log.reader import LogReader
from perdure.tools.state import SessionState


class ToolFailed(Exception):
    """A failure with a text for the model: the reason, and what to do instead.

    Any other exception that a tool raises is a failure of the call as well, with its own text.
    """


@dataclass(frozen=True)
class Context:
    """The environment of one tool call.

    A tool that is cancelled (`asyncio.CancelledError`) ends every process it started.
    """

    conversation_id: str
    action_id: str
    seq: int
    """The slot of the action in `log`."""
    workspace: Path
    log: LogReader
    progress: Callable[[str], None]
    """Reports the newest output to watchers."""
    keep: Callable[[bytes], Awaitable[str]]
    """Stores bytes too long for an event, and returns the key to mention."""
    secrets: LentSecrets = NO_LENT_SECRETS
    """The secrets that a command may use by naming them."""
    sandbox: Sandbox = UNCONFINED
    """The sandbox for every process that the tool starts, with network access or without."""
    network: bool = True
    variables: Mapping[str, str] = field(default_factory=dict)
    """Further variables for the commands of the tool, none of them secret."""
    replay_cells: bool = False
    """Whether a lost kernel is made again by running its cells again."""
    memory: AgentMemory | None = None
    """The memories of the conversation's user, as far as the agent may use them."""
    may_write_app: bool = False
    """Whether the user of the conversation may change the `app:` values of the session state."""

    @cached_property
    def state(self) -> SessionState:
        """The session state, which async tools may read and change; see `SessionState`."""
        return SessionState(self.log, f"call {self.action_id}", self.may_write_app)


@dataclass(frozen=True)
class Tool:
    """A capability of an agent."""

    definition: ToolDefinition
    parse: Callable[[dict[str, Any]], AnyAction]
    """Turns the model's decoded arguments into an action. Raises ValueError for the model."""
    run: Callable[[Any, Context], Awaitable[AnyObservation]]
    """Executes an action; an exception is a failure of this call, which the model sees."""
    resources: Callable[[Any], tuple[str, ...] | None] = lambda _: None
    """Names the resources that an action reads or changes, such as `file:src/main.py`: actions
    with different resources may run side by side. None stands for unknown."""

    @property
    def name(self) -> str:
        return self.definition.name
