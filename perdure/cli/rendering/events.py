"""Rendering of events as text and as JSON."""

import json
from collections.abc import Sequence
from typing import Any

from rich.text import Text

from perdure.cli.options import Format
from perdure.cli.output import escape_controls, show, show_json
from perdure.events.actions import (
    FileEditorAction,
    FinishAction,
    MCPToolAction,
    TaskTrackerAction,
    TerminalAction,
    ThinkAction,
)
from perdure.events.base import EventBase
from perdure.events.condensation import Condensation
from perdure.events.content import ImageContent, TextContent, join_text
from perdure.events.control import ConversationErrorEvent, ConversationStateUpdateEvent
from perdure.events.custom import AnyAction, CustomAction
from perdure.events.entry import Entry
from perdure.events.event import AnyEvent, UnknownEvent
from perdure.events.messages import MessageEvent, RecallEvent, SystemPromptEvent
from perdure.events.observations import FinishObservation, ThinkObservation
from perdure.events.tools import (
    ActionEvent,
    AgentErrorEvent,
    ObservationEvent,
    UserRejectObservation,
)
from perdure.events.usage import Usage
from perdure.storage.log.reader import EntryOrError
from perdure.wording import count

MAX_RESULT_LINES = 12
"""The middle of a longer text is left out; `-o json` has all of it."""

MAX_LINE_CHARS = 400
"""The rest of a line is cut off."""

STYLES = {"user": "bold green", "agent": "cyan", "error": "red", "system": "dim"}


def show_slot(slot: EntryOrError, output: Format) -> None:
    """Print an entry, or an error line for an unreadable slot."""
    if output is not Format.text:
        show_json(slot_fields(slot), output)
    elif isinstance(slot, Entry):
        _show_entry(slot)
    else:
        show(Text(f"{slot.seq:>6}  {slot}", style="red"))


def _show_entry(entry: Entry) -> None:
    source, text = describe_event(entry.event)
    time = entry.event.timestamp[11:19]
    head = f"{entry.seq:>6}  {time:<8}  {source:<11} "
    body = escape_controls(text).split("\n")
    style = STYLES.get(source, "red" if is_failure(entry.event) else "")
    show(Text.assemble((head, "dim"), (body[0], style)))
    rest = [(line, style) for line in body[1:]]
    if entry.usage is not None:
        rest.append((_describe_usage(entry.usage), "dim"))
    for line in rest:
        show(Text.assemble(" " * len(head), line))


def slot_fields(slot: EntryOrError) -> dict[str, Any]:
    """Convert a slot to JSON: its seq and the stored object, or the error."""
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


def describe_event(event: AnyEvent) -> tuple[str, str]:
    """Return the actor and a text of bounded length."""
    match event:
        case MessageEvent():
            return event.source, _describe_content(event.llm_message.content)
        case SystemPromptEvent():
            names = ", ".join(tool.name for tool in event.tools) or "none"
            return (
                "system",
                f"prompt of {count(len(event.system_prompt.text), 'character')}; tools: {names}",
            )
        case ActionEvent():
            return "agent", _describe_action(event)
        case ObservationEvent(observation=FinishObservation() | ThinkObservation()):
            return event.tool_name, "done"  # they only repeat the arguments
        case ObservationEvent():
            return event.tool_name, _describe_content(event.observation.content)
        case AgentErrorEvent():
            return event.tool_name, f"{event.classification}: {shorten(event.error)}"
        case ConversationStateUpdateEvent():
            return "system", _describe_state_update(event)
        case Condensation(summary=summary):
            out = f"{count(len(event.forgotten_event_ids), 'event')} out of view"
            return "system", f"{out}\n{shorten(summary)}" if summary else out
        case RecallEvent():
            return "recalled", shorten(event.content)
        case UnknownEvent():
            return "unknown", f"{event.kind} {_compact_json(event.raw)}"
        case _:
            source, text = event.describe()
            return source, text or f"{event.kind} {_describe_own_fields(event)}".rstrip()


def _describe_action(event: ActionEvent) -> str:
    thought = join_text(event.thought).strip()
    if event.action is None:
        call = f"{event.tool_name} {event.tool_call.arguments} (cannot be run)"
    else:
        call = describe_call(event.tool_name, event.action)
    return f"{shorten(thought)}\n{shorten(call)}" if thought else shorten(call)


def describe_call(name: str, action: AnyAction) -> str:
    """Describe a call by its main argument."""
    match action:
        case TerminalAction():
            return f"$ {action.command}"
        case FileEditorAction():
            return "\n".join([f"{name} {action.command} {action.path}", *_diff_lines(action)])
        case ThinkAction():
            return f"{name}: {action.thought}"
        case FinishAction():
            return f"{name}: {action.message}"
        case TaskTrackerAction():
            tasks = (f"  [{task.status}] {task.title}" for task in action.task_list)
            return "\n".join([f"{name} {action.command}", *tasks])
        case MCPToolAction():
            return f"{name} {_compact_json(action.data)}"
        case CustomAction():
            return action.describe(name)


def _diff_lines(action: FileEditorAction) -> list[str]:
    removed = [f"- {line}" for line in (action.old_str or "").splitlines()]
    new_text = action.new_str if action.file_text is None else action.file_text
    return removed + [f"+ {line}" for line in (new_text or "").splitlines()]


def _describe_state_update(event: ConversationStateUpdateEvent) -> str:
    match event.key, event.value:
        case "spec", {"model": {"name": model}}:
            return f"model {model}"
        case "opened", {"run_id": run}:
            return f"opened by the workflow run {run}"
        case key, value:
            return f"{key}: {value if isinstance(value, str) else _compact_json(value)}"


def _describe_content(parts: Sequence[TextContent | ImageContent]) -> str:
    images = sum(isinstance(part, ImageContent) for part in parts)
    text = shorten(join_text(parts).strip("\n"))
    return f"{text}\n[{count(images, 'image')}]".lstrip("\n") if images else text


def shorten(text: str) -> str:
    """Keep the first and the last lines of a long text, and cut long lines."""
    lines = [
        line if len(line) <= MAX_LINE_CHARS else f"{line[:MAX_LINE_CHARS]} ..."
        for line in text.split("\n")
    ]
    if len(lines) <= MAX_RESULT_LINES + 1:
        return "\n".join(lines)
    half = MAX_RESULT_LINES // 2
    left_out = f"[... {count(len(lines) - MAX_RESULT_LINES, 'more line')} ...]"
    return "\n".join([*lines[:half], left_out, *lines[-half:]])


def _describe_own_fields(event: EventBase) -> str:
    own = event.model_dump(mode="json", exclude_none=True, exclude=set(EventBase.model_fields))
    own.pop("kind", None)
    return _compact_json(own) if own else ""


def _compact_json(value: Any) -> str:
    return shorten(json.dumps(value, ensure_ascii=False, separators=(", ", ": ")))


def _describe_usage(usage: Usage) -> str:
    tokens = usage.prompt_tokens + usage.completion_tokens
    cost = f"${usage.cost:.4f}, " if usage.cost else ""
    return f"({count(tokens, 'token')}, {cost}{usage.latency:.1f} s)"
