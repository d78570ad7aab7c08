"""A turn of a conversation as a few neutral parts, which each protocol shows in its own way.

The parts follow from the frames alone: whoever reads the same frames gets the same parts.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

from perdure.agent.loop.start import ConversationStatus, PendingCall
from perdure.agent.loop.status import Status
from perdure.api.frames import (
    DeltaFrame,
    DurableFrame,
    ErrorFrame,
    Frame,
    ItemAbortedFrame,
    StatusFrame,
)
from perdure.events.content import join_text
from perdure.events.control import ConversationErrorEvent, StuckEvent
from perdure.events.event import AnyEvent, agent_text, parse_event
from perdure.events.messages import MessageEvent
from perdure.events.tools import (
    ActionEvent,
    AgentErrorEvent,
    ObservationEvent,
    UserRejectObservation,
)
from perdure.events.usage import Usage

FINISH_TOOL = "finish"
"""The tool whose result is the last text of a turn, and no call."""


@dataclass(frozen=True)
class Reasoning:
    """The reasoning of the model before it says or does something; it comes whole."""

    item_id: str
    text: str


@dataclass(frozen=True)
class Text:
    """A piece of what the agent says.

    The pieces of an item together are its text. Where a model was asked again and said something
    else, that follows whole, in a line of its own. `last` ends the item; `final` then tells whether
    it is an answer, and not what the agent says before it goes on.
    """

    item_id: str
    text: str
    last: bool = False
    final: bool = False


@dataclass(frozen=True)
class Called:
    """The agent calls a tool; `arguments` are those that the model sent, as JSON."""

    item_id: str
    call_id: str
    tool_name: str
    arguments: str


@dataclass(frozen=True)
class Returned:
    """A call has its result, or an error or a person's rejection in its place."""

    call_id: str
    tool_name: str
    text: str
    is_error: bool = False


@dataclass(frozen=True)
class Asked:
    """The turn ends with calls that wait for a person."""

    calls: tuple[PendingCall, ...]


@dataclass(frozen=True)
class Failed:
    """The turn ends with an error."""

    code: str
    detail: str


@dataclass(frozen=True)
class Ended:
    """The end of the turn, always its last part; `usage` is that of the turn."""

    status: Status
    reason: str | None
    usage: Usage
    seq: int
    """The last slot of the turn."""


Part: TypeAlias = Reasoning | Text | Called | Returned | Asked | Failed | Ended


@dataclass
class TurnReader:
    """Reads the parts of the turn that the message in slot `seq` began, frame by frame.

    The frames are those after slot `seq`.
    """

    seq: int
    is_over: bool = False
    _usage: Usage = field(default_factory=Usage)
    _status: ConversationStatus | None = None
    _texts: dict[str, "_GrowingText"] = field(default_factory=dict)
    _finishing: dict[str, Called] = field(default_factory=dict)
    """Calls of the tool that ends a turn, until it is known whether they do."""

    def take(self, frame: Frame) -> list[Part]:
        """Take the next frame; return the parts that it brings."""
        if self.is_over:
            return []
        match frame:
            case DeltaFrame(step="llm.chat"):
                item_id = f"{frame.run}:{frame.item_id}"
                text = self._texts.setdefault(item_id, _GrowingText(item_id))
                return text.grow(frame)
            case ItemAbortedFrame():
                return self._close(f"{frame.run}:{frame.item_id}")
            case DurableFrame() if frame.seq > self.seq:
                return [*self._read(frame), *self._find_end()]
            case StatusFrame():
                self._status = frame.status
                return self._find_end()
            case ErrorFrame(id=None):
                self.is_over = True
                end = Ended("error", frame.detail, self._usage, self.seq)
                return [*self._close_all(), Failed(frame.code, frame.detail), end]
            case _:
                return []

    def _read(self, frame: DurableFrame) -> list[Part]:
        self.seq = frame.seq
        fields = dict(frame.entry)
        origin = fields.pop("origin")
        if usage := fields.pop("usage", None):
            self._usage += Usage.model_validate(usage)
        item_id = f"{origin['run']}:{origin['activity'].partition(' ')[0]}"
        return self._read_event(item_id, parse_event(fields))

    def _read_event(self, item_id: str, event: AnyEvent) -> list[Part]:
        match event:
            case MessageEvent(source="agent"):
                message = event.llm_message
                is_answer = event.llm_response_id is not None
                return self._say(
                    item_id, message.reasoning_content, agent_text(event), final=is_answer
                )
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
            case StuckEvent():
                return [Failed("stuck", event.describe()[1])]
            case _:
                return self._close(item_id)

    def _say(
        self, item_id: str, reasoning: str | None, text: str, *, final: bool = False
    ) -> list[Part]:
        thought: list[Part] = [Reasoning(item_id, reasoning)] if reasoning else []
        growing = self._texts.pop(item_id, None)
        if growing is None and not text:
            return thought
        growing = growing or _GrowingText(item_id)
        return [*thought, growing.end(text, final=final)]

    def _call(self, item_id: str, event: ActionEvent) -> list[Part]:
        call = Called(item_id, event.tool_call_id, event.tool_name, event.tool_call.arguments)
        if event.tool_name == FINISH_TOOL:
            self._finishing[event.tool_call_id] = call
            return []
        return [call]

    def _return(self, item_id: str, event: ObservationEvent) -> list[Part]:
        result, text = event.observation, join_text(event.observation.content)
        if not result.is_error and event.tool_call_id in self._finishing:
            del self._finishing[event.tool_call_id]
            return [Text(item_id, text, last=True, final=True)]
        returned = Returned(event.tool_call_id, event.tool_name, text, result.is_error)
        return [*self._unfinish(event.tool_call_id), returned]

    def _fail(self, call_id: str, tool_name: str, text: str) -> list[Part]:
        returned = Returned(call_id, tool_name, text, is_error=True)
        return [*self._unfinish(call_id), returned]

    def _unfinish(self, call_id: str) -> list[Part]:
        """Return a call that was to end the turn, and did not."""
        call = self._finishing.pop(call_id, None)
        return [call] if call is not None else []

    def _find_end(self) -> list[Part]:
        """Return the parts of the end, if the turn is over by what is known."""
        status = self._status
        if status is None or status.next_seq != self.seq + 1 or not is_turn_over(status):
            return []
        self.is_over = True
        asked = tuple(call for call in status.pending if call.asks)
        asks: list[Part] = [Asked(asked)] if asked else []
        end = Ended(status.status, status.reason, self._usage, self.seq)
        return [*self._close_all(), *asks, end]

    def _close(self, item_id: str) -> list[Part]:
        text = self._texts.pop(item_id, None)
        return [Text(item_id, "", last=True)] if text is not None and text.sent else []

    def _close_all(self) -> list[Part]:
        return [part for item_id in list(self._texts) for part in self._close(item_id)]


def is_turn_over(status: ConversationStatus) -> bool:
    """Tell whether the agent's turn has ended or waits for a person; a turn must have begun."""
    asks = status.status == "waiting_for_confirmation"
    return status.turn > 0 and status.status != "running" and (asks or not status.pending)


@dataclass
class _GrowingText:
    """The text of an item, of which `sent` cannot be taken back."""

    item_id: str
    text: str = ""
    sent: str = ""
    attempt: int = 0
    is_whole: bool = True
    """Whether nothing is missing in front of the text."""

    def grow(self, part: DeltaFrame) -> list[Part]:
        if part.attempt > self.attempt:
            self.text, self.attempt, self.is_whole = "", part.attempt, True
        self.is_whole = self.is_whole and part.offset <= len(self.text)
        self.text = self.text[: part.offset] + part.text
        if not self.is_whole or not self.text.startswith(self.sent) or self.text == self.sent:
            return []
        piece, self.sent = self.text[len(self.sent) :], self.text
        return [Text(self.item_id, piece)]

    def end(self, text: str, *, final: bool) -> Text:
        piece = text[len(self.sent) :] if text.startswith(self.sent) else f"\n{text}"
        return Text(self.item_id, piece, last=True, final=final)
