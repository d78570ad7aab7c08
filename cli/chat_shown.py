"""A conversation as it is shown while somebody talks to it: words in full, each call on a line."""

from collections.abc import Container

from rich.markdown import Markdown
from rich.text import Text

from cli.events_shown import called, is_failure, told
from cli.output import plain, show, stdout
from events.actions import FinishAction, ThinkAction
from events.condensation import Condensation
from events.content import text_of
from events.control import ConversationErrorEvent
from events.entry import Entry
from events.event import AnyEvent
from events.messages import MessageEvent
from events.observations import Observation, TerminalObservation
from events.tools import ActionEvent, AgentErrorEvent, ObservationEvent, UserRejectObservation

WIDTH = 100
"""Characters of a call, and of its result, that are shown."""


class Shown:
    """Prints event after event; `own` are the ids of messages that were typed here."""

    def __init__(self, own: Container[str]) -> None:
        self.own = own
        self.after = -1
        self.calls: dict[str, ActionEvent] = {}

    def tell(self, entry: Entry) -> None:
        self.after = entry.seq
        match entry.event:
            case MessageEvent() as event:
                self._message(event)
            case ActionEvent() as event:
                self.calls[event.id] = event
                say(text_of(event.thought))
            case ObservationEvent() | AgentErrorEvent() | UserRejectObservation() as event:
                self._answered(event)
            case ConversationErrorEvent() as event:
                show(Text(plain(f"{event.code}: {event.detail}"), "red"))
            case Condensation():
                show(Text("  * condensed", "dim"))
            case event if event.kind in ("StuckEvent", "InterruptEvent"):
                show(Text(plain(" ".join(told(event))), "yellow"))
            case _:
                pass

    def _message(self, event: MessageEvent) -> None:
        text = text_of(event.llm_message.content)
        if event.source == "agent":
            say(text)
        elif event.source == "user" and event.message_id not in self.own:
            show(Text(f"\n> {plain(text)}", "bold green"))
        elif event.source == "environment":
            show(Text(plain(f"  * {text}"), "dim"))

    def _answered(self, event: ObservationEvent | AgentErrorEvent | UserRejectObservation) -> None:
        action = self.calls.pop(event.action_id or "", None)
        if action is not None and isinstance(action.action, FinishAction):
            say(action.action.message)
            return
        call = line_of(called(action.tool_name, action.action) if action and action.action else "")
        thinks = action is not None and isinstance(action.action, ThinkAction)
        result = "" if thinks else f"  ->  {result_of(event)}"
        style = "red" if is_failure(event) else "dim"
        show(Text(f"  * {call or event.tool_name}").append(plain(result), style))


def say(text: str) -> None:
    """Words of the agent, as a whole."""
    if not text.strip():
        return
    if stdout.is_terminal:
        stdout.print(Markdown(plain(text), hyperlinks=False), soft_wrap=False)
    else:
        show(text)


def result_of(event: AnyEvent) -> str:
    """What came of a call, in one line."""
    match event:
        case ObservationEvent():
            return _observed(event.observation)
        case AgentErrorEvent():
            return line_of(event.error)
        case UserRejectObservation():
            return f"rejected: {line_of(event.rejection_reason)}"
        case _:
            return ""


def _observed(observation: Observation) -> str:
    lines = text_of(observation.content).strip().split("\n")
    ended = ""
    if isinstance(observation, TerminalObservation) and observation.exit_code is not None:
        while lines and lines[-1].startswith("["):  # how the command and its shell ended
            lines.pop()
        ended = f"exit {observation.exit_code}, " if observation.exit_code else ""
    if observation.is_error or len(lines) <= 1:
        return f"{ended}{line_of(lines[0]) if lines else 'no output'}"
    return f"{ended}{len(lines)} lines"


def line_of(text: str) -> str:
    """The first line, cut where it is long."""
    first, _, more = plain(text.strip()).partition("\n")
    return f"{first[:WIDTH]} ..." if more or len(first) > WIDTH else first
