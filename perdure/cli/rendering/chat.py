"""Events as `perdure chat` shows them: messages in full, calls when they start, results folded."""

from dataclasses import dataclass, field
from typing import TypeAlias

from rich.text import Text

from perdure.cli.output import escape_controls, show
from perdure.cli.rendering.diffs import diff_of_edit, style_diff_line, summarize_diff
from perdure.cli.rendering.events import TRUNCATED, describe_call, describe_event, is_failure
from perdure.cli.rendering.markdown import print_markdown
from perdure.events.actions import FileEditorAction, FinishAction
from perdure.events.condensation import Condensation
from perdure.events.content import ImageContent, join_text
from perdure.events.control import ConversationErrorEvent, StuckEvent
from perdure.events.custom import AnyObservation
from perdure.events.entry import Entry
from perdure.events.messages import MessageEvent
from perdure.events.observations import (
    FileEditorObservation,
    TerminalObservation,
    ThinkObservation,
)
from perdure.events.tools import (
    ActionEvent,
    AgentErrorEvent,
    ObservationEvent,
    UserRejectObservation,
)
from perdure.events.waiting import QuestionEvent, SignalEvent, WaitEvent
from perdure.wording import count

Result: TypeAlias = ObservationEvent | AgentErrorEvent | UserRejectObservation

MAX_CALL_CHARS = 200
"""The rest of a line is cut off."""

MAX_CALL_LINES = 4
MAX_OUTPUT_LINES = 4
MAX_DIFF_LINES = 30


@dataclass
class ChatPrinter:
    """Printer of events; messages of `own_message_ids` were typed here and are not repeated."""

    own_message_ids: set[str] = field(default_factory=set)
    last_seq: int = -1
    pending_actions: dict[str, ActionEvent] = field(default_factory=dict)
    newest_call: str | None = None
    """The action whose call was printed last: its result needs no name."""
    folded_seq: int | None = None
    """The slot of the newest result of which not all was printed."""

    def print_event(self, entry: Entry) -> None:
        self.last_seq = entry.seq
        match entry.event:
            case MessageEvent() as event:
                self._print_message(event)
            case ActionEvent() as event:
                self._print_call(event)
            case ObservationEvent() | AgentErrorEvent() | UserRejectObservation() as event:
                self._print_result(entry.seq, event)
            case ConversationErrorEvent() as event:
                show(Text(escape_controls(f"{event.code}: {event.detail}"), "red"))
            case Condensation():
                show(Text("  * condensed", "dim"))
            case QuestionEvent() as event:
                first, *rest = escape_controls(event.describe()[1]).split("\n")
                show(Text(f"\n  ? {first.removeprefix('asks: ')}", "bold"))
                for line in rest:
                    show(Text(f"  {line}"))
            case WaitEvent() | SignalEvent() as event:
                show(Text(escape_controls(f"  * {event.describe()[1]}"), "dim"))
            case StuckEvent() as event:  # an interrupt is what the end of the turn names
                show(Text(escape_controls(" ".join(describe_event(event))), "yellow"))

    def _print_message(self, event: MessageEvent) -> None:
        text = join_text(event.llm_message.content)
        if event.source == "agent":
            print_markdown(text)
            if event.truncated:
                show(Text(TRUNCATED, "yellow"))
        elif event.source == "user" and event.message_id not in self.own_message_ids:
            print_user_text(text, count_images(event))
        elif event.source == "environment":
            show(Text(escape_controls(f"  * {text}"), "dim"))

    def _print_call(self, event: ActionEvent) -> None:
        print_markdown(join_text(event.thought))
        self.pending_actions[event.id] = event
        if not isinstance(event.action, FinishAction):  # its message is printed as an answer
            self.newest_call = event.id
            text = describe_action(event)
            if isinstance(event.action, FileEditorAction):  # its result shows the difference
                text = first_line(text)
            first, *rest = fold_lines(text, MAX_CALL_LINES)
            show(Text.assemble("  * ", (first, "bold")))
            for line in rest:
                show(Text(f"    {line}"))

    def _print_result(self, seq: int, event: Result) -> None:
        action = self.pending_actions.pop(event.action_id or "", None)
        if action is not None and isinstance(action.action, FinishAction):
            print_markdown(action.action.message)
            return
        if isinstance(event, ObservationEvent) and isinstance(event.observation, ThinkObservation):
            return
        name = ""
        if action is None or action.id != self.newest_call:
            name = f"{first_line(describe_action(action)) if action else event.tool_name}: "
        if self._print_body(seq, name, event):
            self.folded_seq = seq

    def _print_body(self, seq: int, name: str, event: Result) -> bool:
        """Print a result, and tell whether it is folded."""
        head, lines, shown = _fold_result(event)
        show(Text(f"    -> {escape_controls(name)}").append_text(head))
        for line in shown:
            show(line)
        if hidden := lines - len(shown):
            text = f"{hidden} more line{'' if hidden == 1 else 's'}"
            show(Text(f"       ... {text}: Ctrl-O or /show {seq}", "dim italic"))
        return hidden > 0


def _fold_result(event: Result) -> tuple[Text, int, list[Text]]:
    """Return the head of a result, the number of its lines, and those that are shown."""
    if isinstance(event, ObservationEvent) and (diff := _diff_of(event.observation)):
        shown = [style_diff_line(line) for line in diff[:MAX_DIFF_LINES]]
        return Text(summarize_diff(diff)), len(diff), shown
    failed = is_failure(event)
    head, lines = summarize_result(event), output_lines(event)
    if head.endswith(first_line(lines[0]) if lines else ""):
        lines = lines[1:]  # the head has the first line
    # The end of a failure says more than its beginning.
    newest = lines[-MAX_OUTPUT_LINES:] if failed else lines[:MAX_OUTPUT_LINES]
    style = "red" if failed else "dim"
    return Text(head, style), len(lines), [Text(f"       {_cut(line)}", style) for line in newest]


def print_user_text(text: str, images: int = 0) -> None:
    """Print a message of the user."""
    first, *rest = escape_controls(text).split("\n")
    show(Text(f"\n> {first}", "bold green"))
    for line in rest:
        show(Text(f"  {line}", "bold green"))
    if images:
        show(Text(f"  [{images} image{'' if images == 1 else 's'}]", "dim"))


def count_images(event: MessageEvent) -> int:
    parts = event.llm_message.content
    return sum(len(part.image_urls) for part in parts if isinstance(part, ImageContent))


def describe_action(event: ActionEvent) -> str:
    if event.action is None:
        return f"{event.tool_name} {event.tool_call.arguments}"
    return describe_call(event.tool_name, event.action)


def _diff_of(observation: AnyObservation) -> list[str]:
    is_edit = isinstance(observation, FileEditorObservation) and not observation.is_error
    return diff_of_edit(observation) if is_edit else []  # type: ignore[arg-type]


def output_lines(event: Result) -> list[str]:
    """Return the lines of a result, without the tool's own notes on a command and its shell."""
    match event:
        case AgentErrorEvent():
            text = event.error
        case UserRejectObservation():
            text = event.rejection_reason
        case ObservationEvent():
            text = join_text(event.observation.content)
    lines = escape_controls(text.strip("\n")).expandtabs().split("\n")
    if isinstance(event, ObservationEvent) and isinstance(event.observation, TerminalObservation):
        while lines and lines[-1].startswith("["):
            lines.pop()
    return lines


def summarize_result(event: Result) -> str:
    """Summarize the result of a call in one line."""
    match event:
        case ObservationEvent():
            return _summarize_observation(event)
        case AgentErrorEvent():
            return first_line(event.error)
        case UserRejectObservation():
            return f"rejected: {first_line(event.rejection_reason)}"


def _summarize_observation(event: ObservationEvent) -> str:
    observation, lines, exit_note = event.observation, output_lines(event), ""
    if isinstance(observation, TerminalObservation) and observation.exit_code:
        exit_note = f"exit {observation.exit_code}, "
    if len(lines) <= 1 or (observation.is_error and not exit_note):
        text = first_line(lines[0]) if lines else ""
        return f"{exit_note}{text or 'no output'}"
    return f"{exit_note}{count(len(lines), 'line')}"


def fold_lines(text: str, most: int) -> list[str]:
    """Return the first lines, cut, and how many more there are."""
    lines = [_cut(line) for line in escape_controls(text.strip("\n")).expandtabs().split("\n")]
    if len(lines) <= most + 1:
        return lines
    return [*lines[:most], f"... {len(lines) - most} more lines"]


def _cut(line: str) -> str:
    return f"{line[:MAX_CALL_CHARS]} ..." if len(line) > MAX_CALL_CHARS else line


def first_line(text: str) -> str:
    """Return the first line, shortened."""
    return _cut(escape_controls(text.strip()).partition("\n")[0])
