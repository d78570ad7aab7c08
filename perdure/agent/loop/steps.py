"""The steps that a conversation can take; each kind is the name of its activity.

The kind is in the history as the activity's name already: a payload does not repeat it. The `*_seq`
fields are slots of the log, `spec_seq` that of its spec.
"""

import operator
from typing import Annotated, Generic, Literal, TypeAlias, TypeVar

from pydantic import Field, SerializeAsAny

from perdure.agent.loop.attempt import Attempt
from perdure.agent.loop.inbox import InboxItem
from perdure.agent.loop.state import State
from perdure.agent.spec import Agent
from perdure.agent.view.condense.thresholds import CondenseReason
from perdure.agent.view.seq_ranges import SeqRanges
from perdure.events.base import Frozen


class Parent(Frozen):
    """The delegating conversation and the slot of its action; `home` is its queue."""

    conversation_id: str
    action_seq: int
    home: str | None = None


class Open(Frozen):
    """Read the log and take it over for this run; begin it with `spec` if it is empty.

    The waiting `items` are recorded in the same step, and so is the first message of an `attempt`'s
    sample, unless the sample needs to be set up first.
    """

    kind: Literal["log.open"] = Field(default="log.open", exclude=True)
    spec: Agent | None = None
    parent: Parent | None = None
    attempt: Attempt | None = None
    items: tuple[InboxItem, ...] = ()


class SetUp(Frozen):
    """Put the sample's files into the workspace, run its command, and record its first message."""

    kind: Literal["sample.set_up"] = Field(default="sample.set_up", exclude=True)
    attempt: Attempt
    spec_seq: int


class Say(Frozen):
    """Record the message of the attempt's sample for this turn; turns count from 0."""

    kind: Literal["sample.say"] = Field(default="sample.say", exclude=True)
    attempt: Attempt
    turn: int
    spec_seq: int
    shown_skills: tuple[str, ...] | None = ()


class Refusal(Frozen):
    """Actions that will not run, with the reason; without `run` the agent then rests."""

    action_seqs: tuple[int, ...]
    reason: str
    actor: Annotated[str | None, Field(exclude_if=lambda actor: actor is None)] = None
    run: bool = Field(default=True, exclude_if=bool)


class Record(Frozen):
    """Record the refusal, then the items, of which the first `from_inbox` come from the inbox."""

    kind: Literal["log.append"] = Field(default="log.append", exclude=True)
    items: tuple[InboxItem, ...]
    from_inbox: int = 0
    refusal: Refusal | None = None
    spec_seq: int = 0
    shown_skills: tuple[str, ...] | None = ()
    """The skills that were recalled before; None before the first message."""
    unsure_ids: Annotated[tuple[str, ...], Field(exclude_if=lambda ids: not ids)] = ()
    """The ids of messages that may be in the log already, before slot `ids_before`."""
    ids_before: Annotated[int, Field(exclude_if=lambda seq: not seq)] = 0
    prompt_seq: int | None = Field(default=None, exclude_if=lambda seq: seq is None)
    """The slot of the prompt, which is recorded anew if the state that it shows has changed."""


class CloneRepository(Frozen):
    """Clone the repository of the spec into the workspace, and record what is in it."""

    kind: Literal["workspace.clone"] = Field(default="workspace.clone", exclude=True)
    spec_seq: int
    files_seq: int | None = None
    shown_skills: tuple[str, ...] = ()


class Prepare(Frozen):
    """Record the agent's system prompt and its tools."""

    kind: Literal["agent.prepare"] = Field(default="agent.prepare", exclude=True)
    spec_seq: int


class Condense(Frozen):
    """Condense the view; the more `overflows` since the model last responded, the more goes."""

    kind: Literal["llm.condense"] = Field(default="llm.condense", exclude=True)
    spec_seq: int
    forgotten_seqs: SeqRanges
    reason: CondenseReason = "size"
    overflows: int = 0


class Think(Frozen):
    """Ask the model, leaving out the slots of `forgotten_seqs`."""

    kind: Literal["llm.chat"] = Field(default="llm.chat", exclude=True)
    spec_seq: int
    prompt_seq: int = 0
    forgotten_seqs: SeqRanges | None = None
    response_index: int = 0
    """The number of this response in the conversation, from 0."""
    seen_events: int | None = None
    """Set behind a local call, during which the workflow sees no signal: the number of events of
    its history that it has seen. If a signal came since, the step is left to the workflow again.
    """


class GenerateTitle(Frozen):
    """Have a model generate a title for the conversation."""

    kind: Literal["llm.title"] = Field(default="llm.title", exclude=True)
    spec_seq: int
    message_seq: int


class Act(Frozen):
    """Run the tool call of an action."""

    kind: Literal["tool.call"] = Field(default="tool.call", exclude=True)
    action_seq: int
    spec_seq: int
    prompt_seq: int = 0
    repeatable: bool
    shown_skills: tuple[str, ...] | None = None
    files_seq: int | None = None
    """The slot of the event with the newest snapshot of the workspace."""


class Delegate(Frozen):
    """Have another conversation do the task of an action; `budget` is in US dollars."""

    kind: Literal["agent.delegate"] = Field(default="agent.delegate", exclude=True)
    action_seq: int
    spec_seq: int
    budget: float | None = None
    files_seq: int | None = None


class Report(Frozen):
    """Answer a delegating action with the result of its conversation `child`."""

    kind: Literal["agent.report"] = Field(default="agent.report", exclude=True)
    action_seq: int
    child: str
    spec_seq: int
    files_seq: int | None = None
    failure: str | None = None


class ResolveLostCall(Frozen):
    """Record an error for a call with unknown outcome, unless the log has its result."""

    kind: Literal["tool.settle"] = Field(default="tool.settle", exclude=True)
    action_seq: int
    detail: str


class SaveState(Frozen):
    """Save the state beside the log, as a cache for readers, and the messages where they are due.

    `ending` says that the workflow ends, for now, and that the messages are not saved yet. It is
    written only then: workers of before do not know it.
    """

    kind: Literal["conversation.save"] = Field(default="conversation.save", exclude=True)
    state: State
    ending: bool = Field(default=False, exclude_if=operator.not_)


class Close(Frozen):
    """Save the final state; the workflow ends."""

    kind: Literal["conversation.close"] = Field(default="conversation.close", exclude=True)
    state: State


class Ingest(Frozen):
    """Put what the conversation was about into the memories of its user; the workflow ends."""

    kind: Literal["memory.ingest"] = Field(default="memory.ingest", exclude=True)
    spec_seq: int


class FinishAttempt(Frozen):
    """Save the final state of an attempt, score its outcome, and record the result."""

    kind: Literal["sample.finish"] = Field(default="sample.finish", exclude=True)
    attempt: Attempt
    state: State


Step: TypeAlias = (
    Record
    | CloneRepository
    | Prepare
    | SetUp
    | Say
    | Condense
    | Think
    | GenerateTitle
    | Act
    | Delegate
    | Report
    | ResolveLostCall
    | SaveState
    | Close
    | Ingest
    | FinishAttempt
)

AnyStep = TypeVar("AnyStep", bound=Frozen)


class Task(Frozen, Generic[AnyStep]):
    """A step of a conversation, whose events begin at slot `base` of its log.

    The ids are left out where the id of the workflow has both
    (docs/decisions/2026-11-28-implied-fields.md).
    """

    conversation_id: str = Field(default="", exclude_if=operator.not_)
    user_id: str = Field(default="", exclude_if=operator.not_)
    base: int
    step: SerializeAsAny[AnyStep]
