"""What can be done next. Each kind names the activity that does it."""

from typing import Generic, Literal, TypeAlias, TypeVar

from pydantic import SerializeAsAny

from agent.inbox import Item
from agent.spec import Spec
from events.base import Frozen


class Open(Frozen):
    """Read what the log holds, and take it over for this run; begin it with `spec` if empty.

    What has been waiting in the inbox is recorded in the same step.
    """

    kind: Literal["log.open"] = "log.open"
    spec: Spec | None = None
    items: tuple[Item, ...] = ()


class Record(Frozen):
    """Put on the log what has been waiting in the inbox."""

    kind: Literal["log.append"] = "log.append"
    items: tuple[Item, ...]


class Prepare(Frozen):
    """Tell the agent who it is and what tools it has."""

    kind: Literal["agent.prepare"] = "agent.prepare"
    spec: int


class Think(Frozen):
    """Ask the model; `spec` is the slot of the spec in force."""

    kind: Literal["llm.chat"] = "llm.chat"
    spec: int


class Act(Frozen):
    """Run the tool that the action in slot `action` asks for."""

    kind: Literal["tool.call"] = "tool.call"
    action: int
    spec: int
    repeatable: bool


class Settle(Frozen):
    """Answer an action whose call was lost, unless its answer made it into the log."""

    kind: Literal["tool.settle"] = "tool.settle"
    action: int
    known: str


class Save(Frozen):
    """Keep the state beside the log, as a cache for those who open it next."""

    kind: Literal["conversation.save"] = "conversation.save"
    state: str


class Stop(Frozen):
    """Keep the final state; the workflow ends."""

    kind: Literal["conversation.close"] = "conversation.close"
    state: str


Step: TypeAlias = Record | Prepare | Think | Act | Settle | Save | Stop

AnyStep = TypeVar("AnyStep", bound=Frozen)


class Task(Frozen, Generic[AnyStep]):
    """A step, in a conversation, whose events begin at slot `base` of its log."""

    conversation_id: str
    user_id: str
    base: int
    step: SerializeAsAny[AnyStep]
