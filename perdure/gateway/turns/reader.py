"""The parts of a turn, read from what its log has and from the words that grow meanwhile."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from perdure.agent.loop.evolve import fold
from perdure.agent.loop.start import build_status
from perdure.agent.loop.state import ASKING_STATUSES, State
from perdure.api.frames import DeltaFrame, DurableFrame, Frame, ItemAbortedFrame
from perdure.api.notices import TOO_MANY_CONVERSATIONS
from perdure.client.turn import is_turn_over
from perdure.events.condensation import Condensation
from perdure.events.content import join_text
from perdure.events.control import (
    ConversationErrorEvent,
    ConversationStateUpdateEvent,
    InterruptEvent,
    StuckEvent,
)
from perdure.events.entry import Entry, Origin
from perdure.events.event import agent_text, answered_action_id, parse_event
from perdure.events.messages import MessageEvent
from perdure.events.projection import summarize
from perdure.events.tools import (
    ActionEvent,
    AgentErrorEvent,
    ObservationEvent,
    UserRejectObservation,
)
from perdure.events.usage import Usage
from perdure.events.waiting import QuestionEvent
from perdure.gateway.turns.growing_text import GrowingText
from perdure.gateway.turns.parts import (
    Approval,
    Asked,
    Called,
    Condensed,
    Ended,
    Failed,
    Part,
    Reasoning,
    Returned,
    Text,
)

ASK_TOOL = "ask_user"

IS_ASKED = "The user is asked; the next message is the answer."
"""The result of a question, for protocols in which a turn may not end before its calls."""

FINISH_TOOL = "finish"
"""The tool whose result is the last text of a turn, and no call."""


@dataclass
class TurnReader:
    """Reads the parts of a turn, entry by entry, or frame by frame.

    `state` is that of the log before the turn: the first entry is the one in its next slot, which
    has the message or the approval that the turn begins with. `waiting` are the calls that have no
    result then, by the slots of their actions.
    """

    state: State
    waiting: Mapping[int, Called] = field(default_factory=dict)
    is_over: bool = False
    _has_begun: bool = False
    """Whether the agent had its turn: a first approval may leave other calls that wait."""
    _usage: Usage = field(default_factory=Usage)
    _texts: dict[str, GrowingText] = field(default_factory=dict)
    """The texts that grow; of these only the first one is sent."""
    _finishing: dict[str, Called] = field(default_factory=dict)
    """Calls of the tool that ends a turn, until it is known whether they do."""
    _unanswered: dict[int, Called] = field(init=False)
    """Of the waiting calls those that no person has answered."""

    def __post_init__(self) -> None:
        self._unanswered = dict(self.waiting)

    def take(self, frame: Frame) -> list[Part]:
        """Take the next frame; return the parts that it brings."""
        if self.is_over:
            return []
        match frame:
            case DeltaFrame(step="llm.chat"):
                item_id = f"{frame.run}:{frame.item_id}"
                self._texts.setdefault(item_id, GrowingText(item_id)).add(frame)
                return self._grow()
            case ItemAbortedFrame():
                return [*self._close(f"{frame.run}:{frame.item_id}"), *self._grow()]
            case DurableFrame():
                return self.take_entry(make_entry_of(frame))
            case _:
                return []

    def take_entry(self, entry: Entry) -> list[Part]:
        """Take the entry in the next slot; one of before is passed over."""
        if self.is_over or entry.seq < self.state.next_seq:
            return []
        if (question := _find_question(self.state, entry)) is not None:
            self._unanswered.pop(question, None)
        self.state = fold(self.state, [summarize(entry)])
        self._has_begun |= self.state.status not in ASKING_STATUSES
        if entry.usage is not None:
            self._usage += entry.usage
        parts = self._read(entry) if question is None else []
        return [*parts, *self._find_end(), *self._grow()]

    def _grow(self) -> list[Part]:
        """Return the words that are new, unless something else comes before them in the log."""
        if self.is_over or self.state.pending or not self._texts:
            return []
        return [*next(iter(self._texts.values())).take_pieces()]

    def _read(self, entry: Entry) -> list[Part]:
        event, item_id = entry.event, find_item_id(entry)
        match event:
            case MessageEvent(source="agent"):
                reasoning = event.llm_message.reasoning_content
                is_answer = event.llm_response_id is not None
                return self._say(item_id, reasoning, agent_text(event), final=is_answer)
            case ActionEvent():
                said = self._say(item_id, event.reasoning_content, join_text(event.thought))
                return [*said, *self._call(item_id, event)]
            case ObservationEvent():
                return self._return(item_id, event)
            case AgentErrorEvent():
                return self._fail(event.tool_call_id, event.tool_name, event.error)
            case UserRejectObservation():
                return self._fail(event.tool_call_id, event.tool_name, event.rejection_reason)
            case ConversationErrorEvent():
                return [*self._close(item_id), Failed(event.code, event.detail)]
            case ConversationStateUpdateEvent(key="confirmed"):
                return [*self._answer(*event.value)]
            case Condensation():
                count = len(event.forgotten_event_ids)
                return [*self._close(item_id), Condensed(item_id, count, event.summary)]
            case InterruptEvent(reason=str(code)):
                return [*self._close(item_id), Failed(code, TOO_MANY_CONVERSATIONS.message)]
            case QuestionEvent():
                asked = Returned(event.tool_call_id, self._name_call(event), IS_ASKED)
                return [asked, *GrowingText(item_id).end(ask(event), final=True)]
            case StuckEvent():
                return [Failed("stuck", event.describe()[1])]
            case _:
                return self._close(item_id)

    def _name_call(self, event: QuestionEvent) -> str:
        names = (it.tool_name for it in self.state.pending if it.action_id == event.action_id)
        return next(names, ASK_TOOL)

    def _say(
        self, item_id: str, reasoning: str | None, text: str, *, final: bool = False
    ) -> list[Part]:
        thought: list[Part] = [Reasoning(item_id, reasoning)] if reasoning else []
        growing = self._texts.pop(item_id, None)
        if not text and (growing is None or not growing.sent):
            return thought
        return [*(growing or GrowingText(item_id)).end(text, final=final), *thought]

    def _call(self, item_id: str, event: ActionEvent) -> list[Part]:
        spec = self.state.spec
        may_wait = spec is not None and spec.confirmation.policy != "never"
        call = make_call(item_id, event, "possible" if may_wait else "none")
        if event.tool_name == FINISH_TOOL:
            self._finishing[event.tool_call_id] = call
            return []
        return [call]

    def _return(self, item_id: str, event: ObservationEvent) -> list[Part]:
        result, text = event.observation, join_text(event.observation.content)
        if not result.is_error and event.tool_call_id in self._finishing:
            del self._finishing[event.tool_call_id]
            return [*GrowingText(item_id).end(text, final=True)]
        returned = Returned(event.tool_call_id, event.tool_name, text, result.is_error)
        return [*self._unfinish(event.tool_call_id), returned]

    def _fail(self, call_id: str, tool_name: str, text: str) -> list[Part]:
        returned = Returned(call_id, tool_name, text, is_error=True)
        return [*self._unfinish(call_id), returned]

    def _unfinish(self, call_id: str) -> list[Part]:
        """Return a call that was not told yet: it waited, or was to end the turn and did not."""
        waited = (seq for seq, call in self._unanswered.items() if call.call_id == call_id)
        call = self._finishing.pop(call_id, None)
        return [*self._answer(*waited), *([call] if call is not None else [])]

    def _answer(self, *seqs: int) -> list[Called]:
        """Return the calls in these slots that a person has answered now."""
        calls = [self._unanswered.pop(seq, None) for seq in seqs]
        return [replace(call, approval="answered") for call in calls if call is not None]

    def _find_end(self) -> list[Part]:
        """Return the parts of the end, if the turn is over."""
        state = self.state
        if not (self._has_begun and is_turn_over(state)):
            return []
        self.is_over = True
        pending = build_status("", state).pending
        asked = tuple(call for call in pending if call.asks)
        asks: list[Part] = [Asked(asked)] if asked else []
        end = Ended(state.status, state.reason, self._usage, state.next_seq - 1)
        return [*(part for name in list(self._texts) for part in self._close(name)), *asks, end]

    def _close(self, item_id: str) -> list[Part]:
        """End a text of which the log has nothing."""
        text = self._texts.pop(item_id, None)
        if text is None or not text.sent:
            return []
        return [Text(item_id, "", last=True, whole=text.sent)]


def _find_question(state: State, entry: Entry) -> int | None:
    """Return the slot of the question that an entry answers: it was told as answered already."""
    if state.wait is None or state.wait.question is None:
        return None
    if answered_action_id(entry.event) != state.wait.action_id:
        return None
    seqs = (it.seq for it in state.pending if it.action_id == state.wait.action_id)
    return next(seqs, state.wait.seq)


def ask(event: QuestionEvent) -> str:
    """Return a question as the agent says it: a message, for protocols that have no questions."""
    choices = (f"{number}. {choice}" for number, choice in enumerate(event.choices, 1))
    return "\n".join([event.question, *choices])


def find_item_id(entry: Entry) -> str:
    """Return the id of the step that an entry comes from, which is known before the entry is."""
    return f"{entry.origin.run}:{entry.origin.activity.partition(' ')[0]}"


def make_call(item_id: str, event: ActionEvent, approval: Approval = "none") -> Called:
    arguments = event.tool_call.arguments
    return Called(item_id, event.tool_call_id, event.tool_name, arguments, approval)


def make_entry_of(frame: DurableFrame) -> Entry:
    """Make the entry of a frame, without its bytes."""
    fields: dict[str, Any] = dict(frame.entry)
    origin = Origin.model_validate(fields.pop("origin"))
    usage, _ = fields.pop("usage", None), fields.pop("files", None)
    return Entry(
        seq=frame.seq,
        event=parse_event(fields),
        origin=origin,
        usage=Usage.model_validate(usage) if usage is not None else None,
        body=b"",
    )
