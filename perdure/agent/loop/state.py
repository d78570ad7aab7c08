"""The state of a conversation in its workflow: small, and a fold of its events."""

import operator
from collections.abc import Sequence
from typing import Literal, TypeAlias

from pydantic import Field

from perdure.agent.loop.forgotten_ids import ForgottenIds, may_be_forgotten
from perdure.agent.loop.inbox import InboxItem, Signal, UserMessage
from perdure.agent.loop.status import Status
from perdure.agent.loop.stuck import RecentEvent
from perdure.agent.loop.wait import KeptSignal, Wait, remembered_name
from perdure.agent.policies import Confirmation
from perdure.agent.spec import Agent
from perdure.agent.surroundings import is_none
from perdure.agent.view.seq_ranges import SeqRanges
from perdure.events.base import Frozen
from perdure.events.risk import Risk
from perdure.events.summary import EventSummary
from perdure.events.usage import Usage

FOLD_VERSION = 4
"""The version of what events fold to: one more with every change of `summarize` or `evolve`.

A saved state of another version is folded anew from the events.
"""

MAX_RESAVED_EVENTS = 500
"""Length of a log up to which its messages are saved at each end of a turn.

Workflows decide by it whether to save at their end: another number needs a patch.
"""

Ending: TypeAlias = Literal["finish", "reject"]
"""How an agent that called a tool for it ended its turn."""

UNFINISHED_STATUSES: tuple[Status, ...] = (
    "running",
    "paused",
    "waiting_for_confirmation",
    "waiting_for_answer",
    "waiting",
)
"""The statuses in which a turn is not over."""

ASKING_STATUSES: tuple[Status, ...] = ("waiting_for_confirmation", "waiting_for_answer")
"""The statuses in which a person is asked for something."""

WAITING_STATUSES: tuple[Status, ...] = ("waiting_for_answer", "waiting")
"""The statuses in which a wait of the agent's has begun."""

CONDENSE_TOOL = "request_condensation"
"""The tool by which an agent asks for a smaller view."""

HARMLESS_TOOLS = ("think", "finish", "reject_task", CONDENSE_TOOL)
"""Tools without effects, which need no confirmation."""

DELEGATE_TOOL = "delegate"
"""The tool whose calls are conversations of their own."""


class PendingAction(Frozen):
    """An action without a result."""

    seq: int
    action_id: str
    tool_name: str
    tool_call_id: str
    response_id: str
    """The model's response that asked for the action."""
    repeatable: bool
    preview: str | None = None
    resources: tuple[str, ...] | None = None
    risk: Risk = "UNKNOWN"
    confirmation_requested: bool = False
    """Whether a person was asked; from then on only approval lets the action run."""
    approved: bool = False
    outcome_unknown: str | None = None
    """A sentence on the call if it may have been lost with an earlier workflow."""


class ToolTraits(Frozen):
    """The names of the tools with each trait."""

    repeatable: tuple[str, ...] = ()
    """Tools that may run a second time."""
    read_only: tuple[str, ...] = ()
    polling: tuple[str, ...] = ()
    """Tools that an agent calls repeatedly in order to wait."""
    brief: tuple[str, ...] = ()
    """Tools whose calls take a few milliseconds."""
    suspending: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)
    """Tools whose calls are waits."""


class State(Frozen):
    """The history of a conversation as far as decisions need it."""

    next_seq: int = 0
    sha: str = ""
    """A running hash over the stored bytes of every event."""
    fold_version: int = 0
    """The FOLD_VERSION that all events were folded with; 0 if there were several."""
    status: Status = "idle"
    reason: str | None = None
    run_id: str | None = None
    spec: Agent | None = None
    spec_seq: int = 0
    prompt_seq: int | None = None
    tool_traits: ToolTraits = ToolTraits()
    pending: tuple[PendingAction, ...] = ()
    turn_open: bool = False
    """Whether the agent still has to end its turn."""
    ending: Ending | None = None
    """The tool by which the agent ended its last turn; None where it ended with words."""
    rejection_reason: str | None = Field(default=None, exclude_if=is_none)
    """Why the agent has rejected its task, while other calls of that response are pending."""
    first_user_seq: int | None = None
    last_user_seq: int = -1
    finish_call_seq: int | None = None
    """The slot of a successful call of `finish`, while other calls of its response are pending."""
    turn: int = 0
    iterations: int = 0
    """The number of the model's responses in this turn."""
    response_count: int = 0
    """The number of the model's responses in the conversation."""
    usage: Usage = Usage()
    usage_by_model: dict[str, Usage] = Field(default_factory=dict)
    """The total usage, by purpose and model."""
    last_usage: Usage = Usage()
    view_events: int = 0
    """The number of events in the prompt."""
    view_tokens: int = 0
    """The estimated tokens of the events in the prompt."""
    forgotten_seqs: SeqRanges = ()
    """The slots that condensations have removed from the prompt."""
    overflows: int = 0
    """The number of prompts since the last response that were too long."""
    condense_reason: Literal["overflow", "user"] | None = None
    recent_events: tuple[RecentEvent, ...] = ()
    warned_about: tuple[str, ...] = ()
    """The topics that the agent has been warned of."""
    shown_skills: tuple[str, ...] = ()
    files_seq: int | None = None
    """The slot of the event with the newest snapshot of the workspace."""
    home: str | None = None
    """The queue of the workers that have the workspace on disk."""
    repository: str | None = Field(default=None, exclude_if=is_none)
    """The URL of the repository that was cloned into the workspace last."""
    title: str | None = None
    message_seqs: dict[str, int] = Field(default_factory=dict)
    """The slots of the newest messages, by their senders' ids for them."""
    forgotten_ids: ForgottenIds | None = None
    """What is known of the ids of older messages."""
    value_seqs: dict[str, int] = Field(default_factory=dict)
    """The slots of the events that have the conversation's own values, by key."""
    wait: Wait | None = Field(default=None, exclude_if=is_none)
    signals: tuple[KeptSignal, ...] = Field(default=(), exclude_if=operator.not_)
    """The signals that no wait has had yet, the oldest first."""
    has_unnamed_values: bool = False
    """Whether there are, or were, more values than `value_seqs` can name."""

    @property
    def at_rest(self) -> bool:
        """Tell whether the conversation waits for a person or a program."""
        return self.status != "running"


def is_recorded(state: State, item: InboxItem) -> bool:
    """Check whether the item is a message or a signal that the log already holds, by its id."""
    if isinstance(item, Signal):
        return remembered_name(item.signal_id) in state.message_seqs
    return isinstance(item, UserMessage) and item.message_id in state.message_seqs


def find_unsure_ids(state: State, items: Sequence[InboxItem]) -> tuple[str, ...]:
    """Return the ids of messages that the log may hold, though the state has forgotten them."""
    ids = (item.message_id for item in items if isinstance(item, UserMessage))
    return tuple(
        name
        for name in ids
        if name is not None
        and name not in state.message_seqs
        and may_be_forgotten(state.forgotten_ids, name)
    )


def actions_to_confirm(state: State) -> tuple[PendingAction, ...]:
    """Return the pending actions that need a person's confirmation."""
    policy = state.spec.confirmation if state.spec is not None else Confirmation()
    harmless = (*HARMLESS_TOOLS, *state.tool_traits.suspending)
    return tuple(
        action
        for action in state.pending
        if not (action.approved or action.tool_name in harmless)
        and action.outcome_unknown is None
        and (action.confirmation_requested or policy.required_for(action.risk))
    )


def seconds_until_end(spec: Agent, state: State) -> float:
    """Return the time after which the workflow of a conversation with nothing to do ends."""
    waits_for_person = state.status in ("paused", "waiting_for_confirmation")
    if waits_for_person:
        return spec.idle_timeout
    return min(spec.idle_timeout, spec.finished_timeout)


def saves_messages_at_rest(state: State) -> bool:
    """Tell whether the messages are saved with the state, as it rests.

    They are at the end of a turn, unless the log is long and most of it is older than that turn.
    """
    if state.first_user_seq is None or state.status in UNFINISHED_STATUSES:
        return False
    return state.next_seq <= MAX_RESAVED_EVENTS or 2 * state.last_user_seq <= state.next_seq


def has_unsaved_messages(state: State) -> bool:
    """Tell whether the messages of a saved state that rests are still to be saved."""
    return state.first_user_seq is not None and not saves_messages_at_rest(state)


class RunNotes(Frozen):
    """Facts about a workflow's own steps that no event holds; the next run inherits it."""

    lost_calls: dict[int, str] = Field(default_factory=dict)
    """A sentence on each call whose outcome is unknown, by the slot of its action."""
    condense_above: int = 0
    """The number of events up to which condensing for size is not tried again."""
    title_failed: bool = False


def find_lost_call(state: State, notes: RunNotes) -> tuple[int, str] | None:
    """Return the slot of the first action whose outcome is unknown, and a sentence on it."""
    lost = notes.lost_calls
    details = ((it.seq, lost.get(it.seq, it.outcome_unknown)) for it in state.pending)
    return next(((seq, detail) for seq, detail in details if detail is not None), None)


def note_lost_call(notes: RunNotes, action_seq: int, detail: str) -> RunNotes:
    return notes.model_copy(update={"lost_calls": {**notes.lost_calls, action_seq: detail}})


def postpone_condensing(notes: RunNotes, state: State) -> RunNotes:
    """Postpone the next try to condense for size until the view has grown."""
    above = state.view_events + max(10, state.view_events // 10)
    return notes.model_copy(update={"condense_above": above})


def update_notes(notes: RunNotes, state: State, summaries: Sequence[EventSummary]) -> RunNotes:
    """Drop what the events of a step, which `state` has, have made obsolete."""
    seqs = {action.seq for action in state.pending}
    lost = {seq: detail for seq, detail in notes.lost_calls.items() if seq in seqs}
    condensed = any(event.kind == "Condensation" for event in summaries)
    above = 0 if condensed else notes.condense_above
    return notes.model_copy(update={"lost_calls": lost, "condense_above": above})
