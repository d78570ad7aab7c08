"""Events as `perdure chat` shows them: messages in full, each call on a line."""

from dataclasses import dataclass, field
from typing import TypeAlias

from rich.markdown import Markdown
from rich.text import Text

from perdure.cli.output import escape_controls, show, stdout
from perdure.cli.rendering.events import describe_call, describe_event, is_failure
from perdure.events.actions import FinishAction, ThinkAction
from perdure.events.condensation import Condensation
from perdure.events.content import join_text
from perdure.events.control import ConversationErrorEvent
from perdure.events.custom import AnyObservation
from perdure.events.entry import Entry
from perdure.events.messages import MessageEvent
from perdure.events.observations import TerminalObservation
from perdure.events.tools import (
    ActionEvent,
    AgentErrorEvent,
    ObservationEvent,
    UserRejectObservation,
)
from perdure.wording import count

Result: TypeAlias = ObservationEvent | AgentErrorEvent | UserRejectObservation

MAX_CALL_CHARS = 100
"""The rest of a call, and of its result, is cut off."""


@dataclass
class ChatPrinter:
    """Printer of events; messages of `own_message_ids` were typed here and are not repeated."""

    own_message_ids: set[str] = field(default_factory=set)
    last_seq: int = -1
    pending_actions: dict[str, ActionEvent] = field(default_factory=dict)

    def print_event(self, entry: Entry) -> None:
        self.last_seq = entry.seq
        match entry.event:
            case MessageEvent() as event:
                self._print_message(event)
            case ActionEvent() as event:
                self.pending_actions[event.id] = event
                print_agent_text(join_text(event.thought))
            case ObservationEvent() | AgentErrorEvent() | UserRejectObservation() as event:
                self._print_result(event)
            case ConversationErrorEvent() as event:
                show(Text(escape_controls(f"{event.code}: {event.detail}"), "red"))
            case Condensation():
                show(Text("  * condensed", "dim"))
            case event if event.kind in ("StuckEvent", "InterruptEvent"):
                show(Text(escape_controls(" ".join(describe_event(event))), "yellow"))

    def _print_message(self, event: MessageEvent) -> None:
        text = join_text(event.llm_message.content)
        if event.source == "agent":
            print_agent_text(text)
        elif event.source == "user" and event.message_id not in self.own_message_ids:
            show(Text(f"\n> {escape_controls(text)}", "bold green"))
        elif event.source == "environment":
            show(Text(escape_controls(f"  * {text}"), "dim"))

    def _print_result(self, event: Result) -> None:
        action = self.pending_actions.pop(event.action_id or "", None)
        if action is not None and isinstance(action.action, FinishAction):
            print_agent_text(action.action.message)
            return
        call, result = event.tool_name, f"  ->  {summarize_result(event)}"
        if action is not None and action.action is not None:
            call = first_line(describe_call(action.tool_name, action.action)) or call
            result = "" if isinstance(action.action, ThinkAction) else result
        style = "red" if is_failure(event) else "dim"
        show(Text(f"  * {call}").append(escape_controls(result), style))


def print_agent_text(text: str) -> None:
    """Print a message of the agent, as Markdown on a terminal."""
    if not text.strip():
        return
    if stdout.is_terminal:
        stdout.print(Markdown(escape_controls(text), hyperlinks=False), soft_wrap=False)
    else:
        show(text)


def summarize_result(event: Result) -> str:
    """Summarize the result of a call in one line."""
    match event:
        case ObservationEvent():
            return _summarize_observation(event.observation)
        case AgentErrorEvent():
            return first_line(event.error)
        case UserRejectObservation():
            return f"rejected: {first_line(event.rejection_reason)}"


def _summarize_observation(observation: AnyObservation) -> str:
    lines = join_text(observation.content).strip().split("\n")
    exit_note = ""
    if isinstance(observation, TerminalObservation) and observation.exit_code is not None:
        # The tool's own notes on the command and its shell are not its output.
        while lines and lines[-1].startswith("["):
            lines.pop()
        exit_note = f"exit {observation.exit_code}, " if observation.exit_code else ""
    if observation.is_error or len(lines) <= 1:
        return f"{exit_note}{first_line(lines[0]) if lines else 'no output'}"
    return f"{exit_note}{count(len(lines), 'line')}"


def first_line(text: str) -> str:
    """Return the first line, shortened."""
    line, _, rest = escape_controls(text.strip()).partition("\n")
    return f"{line[:MAX_CALL_CHARS]} ..." if rest or len(line) > MAX_CALL_CHARS else line
