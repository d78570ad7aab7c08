"""Events as a person reads them, and as a program does."""

import json
from collections.abc import Sequence
from typing import Any

from rich.text import Text

from cli.output import Format, plain, show, show_json
from events.actions import (
    Action,
    FileEditorAction,
    FinishAction,
    MCPToolAction,
    TaskTrackerAction,
    TerminalAction,
    ThinkAction,
)
from events.base import EventBase
from events.condensation import Condensation, CondensationRequest
from events.content import ImageContent, TextContent, text_of
from events.control import (
    ConversationErrorEvent,
    ConversationStateUpdateEvent,
    InterruptEvent,
    PauseEvent,
    SecurityAnalysisEvent,
    StuckEvent,
)
from events.entry import Entry
from events.event import AnyEvent, UnknownEvent
from events.messages import MessageEvent, RecallEvent, SystemPromptEvent
from events.observations import FinishObservation, Observation, ThinkObservation
from events.tools import ActionEvent, AgentErrorEvent, ObservationEvent, UserRejectObservation
from events.usage import Usage
from storage.reader import Slot

LINES = 12
"""How many lines of a result are shown; `-o json` has them all."""

WIDTH = 400
"""Characters of one line that are shown."""

STYLES = {"user": "bold green", "agent": "cyan", "error": "red", "system": "dim"}


def show_slot(slot: Slot, output: Format) -> None:
    """Print an entry, or a line that names what cannot be read."""
    if isinstance(slot, Entry):
        show_entry(slot, output)
    elif output is Format.text:
        show(Text(f"{slot.seq:>6}  {slot}", style="red"))
    else:
        show_json(fields_of_slot(slot), output)


def show_entry(entry: Entry, output: Format) -> None:
    if output is not Format.text:
        show_json(fields_of_slot(entry), output)
        return
    who, said = told(entry.event)
    at = entry.event.timestamp[11:19]
    head = f"{entry.seq:>6}  {at:<8}  {who:<11} "
    body = plain(said).split("\n")
    style = STYLES.get(who, "red" if is_failure(entry.event) else "")
    show(Text.assemble((head, "dim"), (body[0], style)))
    for line in body[1:]:
        show(Text(" " * len(head)).append(line, style))
    if entry.usage is not None:
        show(Text(" " * len(head)).append(_bill(entry.usage), "dim"))


def fields_of_slot(slot: Slot) -> dict[str, Any]:
    """A slot as JSON: the object as it is stored and its seq, or what is wrong with it."""
    if isinstance(slot, Entry):
        return {"seq": slot.seq, **json.loads(slot.body)}
    return {"seq": slot.seq, "error": {"code": type(slot).__name__.lower(), "message": str(slot)}}


def is_failure(event: AnyEvent) -> bool:
    match event:
        case AgentErrorEvent() | ConversationErrorEvent() | UserRejectObservation():
            return True
        case ObservationEvent():
            return event.observation.is_error
        case _:
            return event.kind == "StuckEvent"


def told(event: AnyEvent) -> tuple[str, str]:
    """Who did it, and what, over as many lines as a person can take in."""
    match event:
        case MessageEvent():
            return event.source, _content(event.llm_message.content)
        case SystemPromptEvent():
            names = ", ".join(tool.name for tool in event.tools) or "none"
            return "system", f"prompt of {len(event.system_prompt.text)} characters; tools: {names}"
        case ActionEvent():
            return "agent", _acted(event)
        case ObservationEvent():
            return event.tool_name, _observed(event.observation)
        case AgentErrorEvent():
            return event.tool_name, f"{event.classification}: {shortened(event.error)}"
        case UserRejectObservation():
            return "user", f"rejected {event.tool_name}: {event.rejection_reason}"
        case ConversationErrorEvent():
            return "error", f"{event.code}: {event.detail}"
        case ConversationStateUpdateEvent():
            return "system", _updated(event)
        case PauseEvent() | InterruptEvent():
            return "user", "paused" if isinstance(event, PauseEvent) else "interrupted"
        case CondensationRequest():
            return event.source, "asked for less in view"
        case Condensation():
            return "system", _condensed(event)
        case RecallEvent():
            return "recalled", shortened(event.content)
        case SecurityAnalysisEvent():
            risks = ", ".join(event.risks.values())
            return "system", f"risk {risks}, by {event.analyzer}"
        case StuckEvent():
            where = f"events {event.first_seq} to {event.last_seq}"
            return "system", f"stuck: {event.pattern}, {event.count} times, {where}"
        case UnknownEvent():
            return "unknown", f"{event.kind} {_compact(event.raw)}"
        case _:
            return event.source, f"{event.kind} {_own_fields(event)}".rstrip()


def _condensed(event: Condensation) -> str:
    forgotten = f"{len(event.forgotten_event_ids)} events out of view"
    return f"{forgotten}\n{shortened(event.summary)}" if event.summary else forgotten


def _acted(event: ActionEvent) -> str:
    thought = text_of(event.thought).strip()
    if event.action is None:
        call = f"{event.tool_name} {event.tool_call.arguments} (cannot be run)"
    else:
        call = called(event.tool_name, event.action)
    return f"{shortened(thought)}\n{shortened(call)}" if thought else shortened(call)


def called(name: str, action: Action) -> str:
    """A call with its main argument."""
    match action:
        case TerminalAction():
            return f"$ {action.command}"
        case FileEditorAction():
            return "\n".join([f"{name} {action.command} {action.path}", *_edit(action)])
        case ThinkAction():
            return f"{name}: {action.thought}"
        case FinishAction():
            return f"{name}: {action.message}"
        case TaskTrackerAction():
            tasks = (f"  [{task.status}] {task.title}" for task in action.task_list)
            return "\n".join([f"{name} {action.command}", *tasks])
        case MCPToolAction():
            return f"{name} {_compact(action.data)}"


def _edit(action: FileEditorAction) -> list[str]:
    out = [f"- {line}" for line in (action.old_str or "").splitlines()]
    new = action.new_str if action.file_text is None else action.file_text
    return out + [f"+ {line}" for line in (new or "").splitlines()]


def _observed(observation: Observation) -> str:
    """The result; what `finish` and `think` say is what they were told."""
    if isinstance(observation, FinishObservation | ThinkObservation):
        return "done"
    return _content(observation.content)


def _updated(event: ConversationStateUpdateEvent) -> str:
    match event.key, event.value:
        case "spec", {"model": {"name": model}}:
            return f"model {model}"
        case "opened", {"run_id": run}:
            return f"opened by the workflow run {run}"
        case key, value:
            return f"{key}: {value if isinstance(value, str) else _compact(value)}"


def _content(parts: Sequence[TextContent | ImageContent]) -> str:
    images = sum(isinstance(part, ImageContent) for part in parts)
    text = shortened(text_of(parts).strip("\n"))
    return f"{text}\n[{images} images]".lstrip("\n") if images else text


def shortened(text: str) -> str:
    """The first lines and the last, where there are too many; long lines are cut."""
    lines = [line if len(line) <= WIDTH else f"{line[:WIDTH]} ..." for line in text.split("\n")]
    if len(lines) <= LINES + 1:
        return "\n".join(lines)
    half = LINES // 2
    left_out = f"[... {len(lines) - LINES} more lines ...]"
    return "\n".join([*lines[:half], left_out, *lines[-half:]])


def _own_fields(event: EventBase) -> str:
    own = event.model_dump(mode="json", exclude_none=True, exclude=set(EventBase.model_fields))
    own.pop("kind", None)
    return _compact(own) if own else ""


def _compact(value: Any) -> str:
    return shortened(json.dumps(value, ensure_ascii=False, separators=(", ", ": ")))


def _bill(usage: Usage) -> str:
    tokens = usage.prompt_tokens + usage.completion_tokens
    cost = f"${usage.cost:.4f}, " if usage.cost else ""
    return f"({tokens:,} tokens, {cost}{usage.latency:.1f} s)"
