"""The events of a run of AG-UI, from the parts of its turn."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from perdure.gateway.ag_ui.calls import ToolCalls
from perdure.gateway.ag_ui.ends import describe_end, format_usage, list_interrupts
from perdure.gateway.ag_ui.events import Event, Names, leave_out_none, make_event
from perdure.gateway.ag_ui.ids import MessageIds
from perdure.gateway.turns.parts import (
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

PROTOCOL_VERSION = "1.0"


@dataclass(frozen=True)
class RunHead:
    """The fields of a run that are known before its turn begins."""

    thread_id: str
    run_id: str
    conversation_id: str
    agent: str
    model: str | None = None
    parent_run_id: str | None = None
    client_state: Any = None
    """The state of the client, which keeps its keys."""
    told: Collection[str] = ()
    """The ids of reasoning that the client has and keeps: told again, it would be doubled."""

    @property
    def names(self) -> dict[str, str]:
        return {"threadId": self.thread_id, "runId": self.run_id}


@dataclass
class RunProjection:
    """The events of a run, part by part."""

    head: RunHead
    is_over: bool = False
    _ids: MessageIds = field(init=False)
    _names: Names = field(default_factory=Names)
    _calls: ToolCalls = field(init=False)
    _steps: int = 0
    _item: str | None = None
    """The item of the step that is open."""
    _text: str | None = None
    """The id of the message that grows."""
    _asked: Asked | None = None
    _failure: Failed | None = None

    def __post_init__(self) -> None:
        self._ids = MessageIds(self.head.conversation_id)
        self._calls = ToolCalls(self._ids, self._names)

    def begin(self, messages: list[Any] | None = None) -> list[Event]:
        """Return the events before those of the parts; `messages` are those before the run."""
        kept = self.head.client_state if isinstance(self.head.client_state, dict) else {}
        ours = {"status": "running", "conversationId": self.head.conversation_id}
        state = {**kept, **ours, "agent": self.head.agent}
        state.pop("reason", None)
        more = {"protocolVersion": PROTOCOL_VERSION, "parentRunId": self.head.parent_run_id}
        return [
            make_event("RUN_STARTED", **self.head.names, **more),
            *([] if messages is None else [make_event("MESSAGES_SNAPSHOT", messages=messages)]),
            make_event("STATE_SNAPSHOT", snapshot=state),
        ]

    def take(self, part: Part) -> list[Event]:
        """Return the events of the next part."""
        match part:
            case Text():
                return [*self._enter(part.item_id), *self._say(part)]
            case Reasoning():
                return [*self._enter(part.item_id), *self._end_text(), *self._reason(part)]
            case Called(approval="answered"):
                return self._calls.call(part)
            case Called():
                return [*self._enter(part.item_id), *self._end_text(), *self._calls.call(part)]
            case Returned():
                return self._calls.give_back(part)
            case Condensed():
                value = leave_out_none(count=part.count, summary=part.summary)
                return [make_event("CUSTOM", name="perdure.condensation", value=value)]
            case Asked():
                self._asked = part
                return []
            case Failed():
                self._failure = part
                return []
            case Ended():
                return self._end(part)

    def fail(self, code: str, message: str) -> list[Event]:
        """Return the events of a run that cannot be told any further; its turn goes on."""
        self.is_over = True
        return [*self._close(), make_event("RUN_ERROR", message=message, code=code)]

    def _enter(self, item_id: str) -> list[Event]:
        """End the step that is open, unless it is this one, and begin this one."""
        if item_id == self._item:
            return []
        left = self._leave()
        self._steps += 1
        self._item = item_id
        return [*left, make_event("STEP_STARTED", stepName=f"step {self._steps}")]

    def _leave(self) -> list[Event]:
        if self._item is None:
            return []
        self._item = None
        return [*self._end_text(), make_event("STEP_FINISHED", stepName=f"step {self._steps}")]

    def _say(self, part: Text) -> list[Event]:
        events = []
        if part.text and self._text is None:
            self._text = self._names.open(self._ids.text(part.item_id))
            started = {"messageId": self._text, "role": "assistant"}
            events.append(make_event("TEXT_MESSAGE_START", **started))
        if part.text:
            content = {"messageId": self._text, "delta": part.text}
            events.append(make_event("TEXT_MESSAGE_CONTENT", **content))
        return [*events, *(self._end_text() if part.last else ())]

    def _end_text(self) -> list[Event]:
        if self._text is None:
            return []
        name, self._text = self._text, None
        return [make_event("TEXT_MESSAGE_END", messageId=name)]

    def _reason(self, part: Reasoning) -> list[Event]:
        name = self._ids.reasoning(part.item_id)
        if name in self.head.told:
            return []
        name = self._names.open(name)
        return [
            make_event("REASONING_START", messageId=name),
            make_event("REASONING_MESSAGE_START", messageId=name, role="reasoning"),
            make_event("REASONING_MESSAGE_CONTENT", messageId=name, delta=part.text),
            make_event("REASONING_MESSAGE_END", messageId=name),
            make_event("REASONING_END", messageId=name),
        ]

    def _close(self) -> list[Event]:
        """End whatever is open."""
        return [*self._calls.close(self._asked), *self._leave()]

    def _end(self, part: Ended) -> list[Event]:
        self.is_over = True
        delta = [{"op": "replace", "path": "/status", "value": part.status}]
        if part.reason is not None:
            delta.append({"op": "add", "path": "/reason", "value": part.reason})
        told = [*self._close(), make_event("STATE_DELTA", delta=delta)]
        usage = format_usage(part.usage, self.head.model)
        failure = self._failure
        if failure is None and part.status in ("error", "stuck"):
            failure = Failed(part.status, part.reason or part.status)
        if failure is not None:
            fields = {"message": failure.detail, "code": failure.code}
            return [*told, make_event("RUN_ERROR", **fields, usage=usage)]
        interrupts = list_interrupts(self._asked, self._calls)
        outcome = describe_end(part.status, part.reason, interrupts)
        names = self.head.names
        return [*told, make_event("RUN_FINISHED", **names, outcome=outcome, usage=usage)]
