"""Rendering of events as text and as JSON."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perdure.cli.options import Format
from perdure.cli.output import escape_controls, is_terminal, show_json, show_parts
from perdure.cli.rendering.diffs import diff_of_edit
from perdure.events.actions import (
    FileEditorAction,
    FinishAction,
    IPythonRunCellAction,
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
from perdure.events.observations import (
    FileEditorObservation,
    FinishObservation,
    ThinkObservation,
)
from perdure.events.tools import (
    ActionEvent,
    AgentErrorEvent,
    ObservationEvent,
    UserRejectObservation,
)
from perdure.events.usage import Usage
from perdure.storage.log.readable import EntryOrError
from perdure.temporal.names import DEFAULT_USER
from perdure.wording import count

MAX_RESULT_LINES = 12
"""The middle of a longer output of a tool is folded, unless all of it is wanted."""

MAX_LINE_CHARS = 400
"""The rest of a longer line of a tool's output is folded."""

MIN_TEXT_WIDTH = 20
"""Columns of a text on a terminal that is narrower than that."""

TRUNCATED = (
    "[The answer ends at its length limit: the rest was not written. See max_output_tokens.]"
)

STYLES = {"user": "bold green", "agent": "cyan", "error": "red", "system": "dim"}


@dataclass
class SlotPrinter:
    """Printer of the slots of one log, in their order; long output is folded unless `full`."""

    output: Format
    full: bool = False
    _spec: dict[str, Any] = field(default_factory=dict)

    def print_slot(self, slot: EntryOrError) -> None:
        """Print an entry, or an error line for an unreadable slot."""
        if self.output is not Format.text:
            show_json(slot_fields(slot), self.output)
        elif isinstance(slot, Entry):
            source, text = self._describe(slot.event)
            _show_entry(slot, name_actor(slot.event, source), text)
        else:
            show_parts((f"{slot.seq:>6}  {slot}", "red"))

    def _describe(self, event: AnyEvent) -> tuple[str, str]:
        """Describe an event; a new spec by what it changes."""
        match event:
            case ConversationStateUpdateEvent(key="spec", value=dict(spec)):
                before, self._spec = self._spec, flatten(spec)
                if before:
                    changes = describe_changes(before, self._spec)
                    return event.source, f"configured: {changes or 'nothing changed'}"
        return describe_event(event, self.full)


def name_actor(event: AnyEvent, source: str) -> str:
    """Return who did it: the name of the user in place of `user`, if there are several users."""
    actor = getattr(event, "actor", None)
    if not isinstance(actor, str) or actor == DEFAULT_USER or source != "user":
        return source
    return shorten(actor)


def flatten(fields: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested fields: `{"limits": {"max_budget": 5}}` has the key `limits.max_budget`."""
    flat: dict[str, Any] = {}
    for name, value in fields.items():
        nested = isinstance(value, Mapping) and value
        flat |= flatten(value, f"{prefix}{name}.") if nested else {f"{prefix}{name}": value}
    return flat


def describe_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Describe what differs between two flattened specs."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    changes = (f"{name}={_describe_value(after.get(name))}" for name in names)
    return shorten(", ".join(changes))


def _describe_value(value: Any) -> str:
    return value if isinstance(value, str) else _compact_json(value)


def _show_entry(entry: Entry, source: str, text: str) -> None:
    time = entry.event.timestamp[11:19]
    head = f"{entry.seq:>6}  {time:<8}  {source:<11} "
    style = STYLES.get(source, "red" if is_failure(entry.event) else "")
    lines = [(line, style) for line in wrap_lines(escape_controls(text), len(head))]
    if isinstance(entry.event, MessageEvent) and entry.event.truncated:
        lines += [(line, "yellow") for line in wrap_lines(TRUNCATED, len(head))]
    if entry.usage is not None:
        lines.append((_describe_usage(entry.usage), "dim"))
    for number, line in enumerate(lines):
        show_parts((" " * len(head) if number else head, "dim"), line)


def wrap_lines(text: str, indent: int = 0) -> list[str]:
    """Split a text into lines; on a terminal, wrap them between words within its width."""
    lines = text.split("\n")
    if not is_terminal(sys.stdout):
        return lines
    from rich.text import Text

    from perdure.cli.consoles import stdout

    width = max(MIN_TEXT_WIDTH, stdout.width - indent - 1)
    return [str(part).rstrip() for line in lines for part in Text(line).wrap(stdout, width)]


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


def describe_event(event: AnyEvent, full: bool = False) -> tuple[str, str]:
    """Return the actor and a text; words are whole, other long texts are folded unless `full`."""
    fold = _leave_whole if full else shorten
    match event:
        case MessageEvent():
            return event.source, _describe_content(event.llm_message.content)
        case SystemPromptEvent():
            return "system", _describe_prompt(event, full)
        case ActionEvent():
            return "agent", _describe_action(event, fold)
        case ObservationEvent(observation=FinishObservation() | ThinkObservation()):
            return event.tool_name, "done"  # they only repeat the arguments
        case ObservationEvent():
            return event.tool_name, fold(_describe_result(event, full))
        case AgentErrorEvent():
            return event.tool_name, f"{event.classification}: {fold(event.error)}"
        case ConversationStateUpdateEvent():
            return "system", fold(_describe_state_update(event))
        case Condensation(summary=summary):
            out = f"{count(len(event.forgotten_event_ids), 'event')} out of view"
            return "system", f"{out}\n{fold(summary)}" if summary else out
        case RecallEvent():
            return "recalled", fold(event.content)
        case UnknownEvent():
            return "unknown", fold(f"{event.kind} {_compact_json(event.raw)}")
        case _:
            source, text = event.describe()
            return source, text or fold(f"{event.kind} {_describe_own_fields(event)}".rstrip())


def _describe_prompt(event: SystemPromptEvent, full: bool) -> str:
    names = ", ".join(tool.name for tool in event.tools) or "none"
    text = event.system_prompt.text
    if full:
        return f"{text}\ntools: {names}"
    return f"prompt of {count(len(text), 'character')}; tools: {names}"


def _describe_action(event: ActionEvent, fold: Callable[[str], str]) -> str:
    """Describe a call: what it says to a person (a thought, a report) is whole."""
    thought = join_text(event.thought).strip()
    match event.action:
        case None:
            call = fold(f"{event.tool_name} {event.tool_call.arguments} (cannot be run)")
        case FinishAction() as report:
            call = describe_call(event.tool_name, report)
        case action:
            call = fold(describe_call(event.tool_name, action))
    return f"{thought}\n{call}" if thought else call


def _describe_result(event: ObservationEvent, full: bool) -> str:
    """Describe a result; with `full`, an edit has what it changed."""
    text = _describe_content(event.observation.content)
    if full and isinstance(event.observation, FileEditorObservation):
        return "\n".join([text, *diff_of_edit(event.observation)])
    return text


def describe_call(name: str, action: AnyAction) -> str:
    """Describe a call by its main argument."""
    match action:
        case TerminalAction():
            return f"$ {action.command}"
        case IPythonRunCellAction():
            return f">>> {action.code}"
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
        case "spec", dict(spec):
            return f"agent of {spec.get('model', {}).get('name', 'no model')}"
        case "opened", {"run_id": run}:
            return f"opened by the workflow run {run}"
        case "repository", {"url": url, "directory": directory, "commit": commit}:
            return f"cloned {url} into {directory}, at commit {commit[:8] or 'none: it is empty'}"
        case key, value:
            return f"{key}: {value if isinstance(value, str) else _compact_json(value)}"


def _describe_content(parts: Sequence[TextContent | ImageContent]) -> str:
    images = sum(len(part.image_urls) for part in parts if isinstance(part, ImageContent))
    text = join_text(parts).strip("\n")
    return f"{text}\n[{count(images, 'image')}]".lstrip("\n") if images else text


def shorten(text: str) -> str:
    """Fold a long text: keep its first and last lines, and the beginning of a long line."""
    lines = [_shorten_line(line) for line in text.split("\n")]
    if len(lines) <= MAX_RESULT_LINES + 1:
        return "\n".join(lines)
    half = MAX_RESULT_LINES // 2
    left_out = f"[... {count(len(lines) - MAX_RESULT_LINES, 'more line')}; --full shows them ...]"
    return "\n".join([*lines[:half], left_out, *lines[-half:]])


def _shorten_line(line: str) -> str:
    rest = len(line) - MAX_LINE_CHARS
    return line if rest <= 0 else f"{line[:MAX_LINE_CHARS]} [... {rest:,} more characters ...]"


def _leave_whole(text: str) -> str:
    return text


def _describe_own_fields(event: EventBase) -> str:
    own = event.model_dump(mode="json", exclude_none=True, exclude=set(EventBase.model_fields))
    own.pop("kind", None)
    return _compact_json(own) if own else ""


def _compact_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))


def _describe_usage(usage: Usage) -> str:
    tokens = usage.prompt_tokens + usage.completion_tokens
    cost = f"${usage.cost:.4f}, " if usage.cost else ""
    return f"({count(tokens, 'token')}, {cost}{usage.latency:.1f} s)"
