"""What can be done next. Each kind names the activity that does it.

The kind is the activity's name and so in the history already: a payload does not repeat it.
"""

from typing import Generic, Literal, TypeAlias, TypeVar

from pydantic import Field, SerializeAsAny

from agent.inbox import Item
from agent.ranges import Ranges
from agent.spec import Spec
from agent.state import State
from agent.trial import Trial
from events.base import Frozen


class Parent(Frozen):
    """The conversation that delegated this one, and the slot of the action by which it did.

    `home` is the queue of the workers that have its files, with which both work.
    """

    conversation_id: str
    action: int
    home: str | None = None


class Open(Frozen):
    """Read what the log holds, and take it over for this run; begin it with `spec` if empty.

    What has been waiting in the inbox is recorded in the same step; and what the sample of a
    `trial` asks, unless it is to be set up first.
    """

    kind: Literal["log.open"] = Field(default="log.open", exclude=True)
    spec: Spec | None = None
    parent: Parent | None = None
    trial: Trial | None = None
    items: tuple[Item, ...] = ()


class SetUp(Frozen):
    """Put the files of a trial's sample into the workspace, run its command, and say what it asks.

    `spec` is the slot of the spec in force.
    """

    kind: Literal["sample.set_up"] = Field(default="sample.set_up", exclude=True)
    trial: Trial
    spec: int


class Say(Frozen):
    """Say what the sample of a trial says in this turn: the first has the number 0.

    `spec` and `skills` are as in `Record`.
    """

    kind: Literal["sample.say"] = Field(default="sample.say", exclude=True)
    trial: Trial
    turn: int
    spec: int
    skills: tuple[str, ...] | None = ()


class Refusal(Frozen):
    """Actions that will not happen, and why."""

    actions: tuple[int, ...]
    reason: str


class Record(Frozen):
    """Put on the log what has been waiting, of which the first `taken` come from the inbox.

    `refusal` goes before it. `spec` is the slot of the spec in force. `skills` names those that
    were recalled before; None: nobody has said anything yet.
    """

    kind: Literal["log.append"] = Field(default="log.append", exclude=True)
    items: tuple[Item, ...]
    taken: int = 0
    refusal: Refusal | None = None
    spec: int = 0
    skills: tuple[str, ...] | None = ()


class Prepare(Frozen):
    """Tell the agent who it is and what tools it has."""

    kind: Literal["agent.prepare"] = Field(default="agent.prepare", exclude=True)
    spec: int


Asked: TypeAlias = Literal["size", "overflow", "user"]
"""Who wants a smaller view: its condenser, the model's context window, a person."""


class Condense(Frozen):
    """Make the view smaller: because of its size, because it overflowed, or because a user asked.

    `tries` counts the overflows since the model last answered: each is met harder than the one
    before.
    """

    kind: Literal["llm.condense"] = Field(default="llm.condense", exclude=True)
    spec: int
    forgotten: Ranges
    asked: Asked = "size"
    tries: int = 0


class Think(Frozen):
    """Ask the model; `spec` is the slot of the spec in force, `forgotten` what it need not read.

    `number` counts the model's answers in this conversation, from 0.
    """

    kind: Literal["llm.chat"] = Field(default="llm.chat", exclude=True)
    spec: int
    prompt: int = 0
    forgotten: Ranges | None = None
    number: int = 0


class Entitle(Frozen):
    """Have a model give the conversation its title."""

    kind: Literal["llm.title"] = Field(default="llm.title", exclude=True)
    spec: int
    message: int


class Act(Frozen):
    """Run the tool that the action in slot `action` asks for.

    `files` is the slot that tells of the newest snapshot of the workspace.
    """

    kind: Literal["tool.call"] = Field(default="tool.call", exclude=True)
    action: int
    spec: int
    prompt: int = 0
    repeatable: bool
    skills: tuple[str, ...] | None = None
    files: int | None = None


class Delegate(Frozen):
    """Have another conversation do what the action in slot `action` asks for.

    `budget` is what is left of this conversation's, in US dollars. `files` is as in `Act`.
    """

    kind: Literal["agent.delegate"] = Field(default="agent.delegate", exclude=True)
    action: int
    spec: int
    budget: float | None = None
    files: int | None = None


class Report(Frozen):
    """Answer the delegating action with what the other conversation came to.

    `spec` is the slot of the spec in force, `files` is as in `Act`.
    """

    kind: Literal["agent.report"] = Field(default="agent.report", exclude=True)
    action: int
    child: str
    spec: int
    files: int | None = None
    failure: str | None = None


class Settle(Frozen):
    """Answer an action whose call was lost, unless its answer made it into the log."""

    kind: Literal["tool.settle"] = Field(default="tool.settle", exclude=True)
    action: int
    known: str


class Save(Frozen):
    """Keep the state beside the log, as a cache for those who open it next."""

    kind: Literal["conversation.save"] = Field(default="conversation.save", exclude=True)
    state: State


class Stop(Frozen):
    """Keep the final state; the workflow ends."""

    kind: Literal["conversation.close"] = Field(default="conversation.close", exclude=True)
    state: State


class Finish(Frozen):
    """Keep the final state of a trial, score what the agent left behind, and record the result."""

    kind: Literal["sample.finish"] = Field(default="sample.finish", exclude=True)
    trial: Trial
    state: State


Step: TypeAlias = (
    Record
    | Prepare
    | SetUp
    | Say
    | Condense
    | Think
    | Entitle
    | Act
    | Delegate
    | Report
    | Settle
    | Save
    | Stop
    | Finish
)

AnyStep = TypeVar("AnyStep", bound=Frozen)


class Task(Frozen, Generic[AnyStep]):
    """A step, in a conversation, whose events begin at slot `base` of its log."""

    conversation_id: str
    user_id: str
    base: int
    step: SerializeAsAny[AnyStep]
