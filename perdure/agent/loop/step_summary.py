"""One line on what a step does, which operators read beside it in the Temporal UI."""

from perdure.agent.loop.inbox import InboxItem, UserMessage
from perdure.agent.loop.state import State
from perdure.agent.loop.steps import (
    Act,
    CloneRepository,
    Close,
    Condense,
    Delegate,
    FinishAttempt,
    GenerateTitle,
    Ingest,
    Open,
    Prepare,
    Record,
    Report,
    ResolveLostCall,
    SaveState,
    Say,
    SetUp,
    Step,
    Think,
)
from perdure.agent.spec import Agent
from perdure.agent.surroundings import name_directory
from perdure.wording import count

MAX_SUMMARY_CHARS = 80
"""Length limit of a text in a summary, for which Temporal takes 400 bytes."""


def summarize_step(step: Step | Open, state: State, spec: Agent) -> str:
    """Summarize a step in a line of at most 400 bytes."""
    model = shorten_summary(spec.model.name.rpartition("/")[2])
    match step:
        case Open():
            return "begin" if step.spec else "read the log"
        case SetUp() | FinishAttempt() | Say():
            return shorten_summary(f"sample {step.attempt.sample}")
        case Record():
            return _summarize_items(step)
        case CloneRepository():
            return shorten_summary(name_directory(spec.repository or ""))
        case Prepare():
            return _count_tools(spec)
        case Think() | Condense():
            return f"{model} · {state.view_events} events"
        case GenerateTitle():
            return f"{model} · title"
        case Act() | Delegate() | ResolveLostCall() | Report():
            return _summarize_call(step.action_seq, state)
        case Ingest():
            return "what it was about"
        case SaveState() | Close():
            return f"{step.state.status} · {step.state.next_seq} events"


def _summarize_items(step: Record) -> str:
    kinds = list(map(_describe_item, step.items))
    return shorten_summary(", ".join([*(["rejection"] if step.refusal else []), *kinds]))


def _describe_item(item: InboxItem) -> str:
    name = item.kind.replace("_", " ")
    return f"{name}: {item.text[:MAX_SUMMARY_CHARS]}" if isinstance(item, UserMessage) else name


def _count_tools(spec: Agent) -> str:
    tools = count(len(spec.tools), "tool")
    return f"{tools}, {count(len(spec.mcp), 'MCP server')}" if spec.mcp else tools


def _summarize_call(action_seq: int, state: State) -> str:
    """Return the name of the tool, with the preview of the call if there is one."""
    call = next((call for call in state.pending if call.seq == action_seq), None)
    if call is None:
        return f"call of event {action_seq}"
    return ": ".join(filter(None, (shorten_summary(call.tool_name), call.preview)))


def shorten_summary(text: str) -> str:
    """Shorten a text to one line of `MAX_SUMMARY_CHARS`."""
    text = " ".join(text.split())
    return text if len(text) <= MAX_SUMMARY_CHARS else f"{text[: MAX_SUMMARY_CHARS - 1]}…"
