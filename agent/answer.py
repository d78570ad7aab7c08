"""From a model's answer to events: a pure function of what was recorded."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from agent.annotations import NOTHING_SAID, Annotations, taken
from agent.arguments import arguments_of
from agent.assessment import Assessment, assessed
from agent.completion import Completion
from agent.tool_names import meant
from events.actions import Action
from events.content import MessageToolCall, TextContent, ToolDefinition
from events.event import Event
from events.messages import MessageEvent
from events.tools import ActionEvent, AgentErrorEvent, ToolErrorKind

Parse: TypeAlias = Callable[[dict[str, Any]], Action]
"""Turns arguments into an action; raises ValueError with a sentence for the model."""

Touches: TypeAlias = Callable[[Any], tuple[str, ...] | None]
"""What an action reads or changes, where that can be told; pure."""

MOST_CALLS = 64
"""Calls of one answer that become actions: a model in a loop makes hundreds."""

LONGEST_NAME = 80
"""Characters of a name nobody knows that the model is shown again."""


class Offered(Protocol):
    """What is needed of a tool to read a call of it."""

    @property
    def definition(self) -> ToolDefinition: ...

    @property
    def parse(self) -> Parse: ...

    @property
    def touches(self) -> Touches: ...


@dataclass(frozen=True)
class _Read:
    """A call as it was understood; without an action there is an error."""

    call: MessageToolCall
    tool_name: str
    action: Action | None = None
    touches: tuple[str, ...] | None = None
    said: Annotations = NOTHING_SAID
    error: tuple[ToolErrorKind, str] | None = None


def events_of(
    completion: Completion,
    tools: Mapping[str, Offered],
    assessment: Assessment | None = None,
) -> list[Event]:
    """The events an answer stands for: its actions, or its message.

    A call of an unknown tool, or with arguments that do not fit, is an action without `action`,
    answered by an error that the model can mend. The actions come first and the errors after
    them, so that nothing stands between the calls of one answer; the risks of the actions come
    last, where somebody asks for them. Calls beyond `MOST_CALLS` are left out: the model sees its
    answer without them, and makes them again if it needs to.
    """
    calls = completion.message.tool_calls or ()
    if not calls:
        return [_message(completion)]
    ends = completion.finish_reason != "length"
    read = [
        _read(call, tools, cut=not ends and nth == len(calls))
        for nth, call in enumerate(calls[:MOST_CALLS], 1)
    ]
    events: list[Event] = [_action(completion, one, first=nth == 0) for nth, one in enumerate(read)]
    events += _errors(completion, read)
    if assessment is None:
        return events
    read_only = [name for name, it in tools.items() if it.definition.annotations.readOnlyHint]
    return [*events, *assessed(events, assessment, read_only, completion.received)]


def _message(completion: Completion) -> MessageEvent:
    return MessageEvent(
        timestamp=completion.received,
        source="agent",
        llm_message=completion.message,
        llm_response_id=completion.id,
    )


def _action(completion: Completion, read: _Read, *, first: bool) -> ActionEvent:
    """Only the first action of an answer carries what was thought before it."""
    message = completion.message
    thought = (part for part in message.content if isinstance(part, TextContent) and part.text)
    return ActionEvent(
        timestamp=completion.received,
        thought=tuple(thought) if first else (),
        reasoning_content=message.reasoning_content if first else None,
        thinking_blocks=message.thinking_blocks if first else (),
        action=read.action,
        tool_name=read.tool_name,
        tool_call_id=read.call.id,
        tool_call=read.call,
        llm_response_id=completion.id,
        security_risk=read.said.risk,
        summary=read.said.summary,
        touches=read.touches,
    )


def _errors(completion: Completion, read: Sequence[_Read]) -> Iterator[AgentErrorEvent]:
    for one in read:
        if one.error is not None:
            classification, sentence = one.error
            yield AgentErrorEvent(
                timestamp=completion.received,
                error=sentence,
                classification=classification,
                tool_name=one.tool_name,
                tool_call_id=one.call.id,
            )


def _read(call: MessageToolCall, tools: Mapping[str, Offered], *, cut: bool) -> _Read:
    name = meant(call.name, tools.keys())
    if name is None:
        have = ", ".join(sorted(tools)) or "none"
        sentence = f"There is no tool {_shortened(call.name)}. Tools: {have}."
        return _Read(call, call.name, error=("unknown_tool", sentence))
    try:
        arguments = arguments_of(call.arguments, cut=cut)
    except ValueError as error:
        return _Read(call, name, error=("bad_arguments", _unread(name, error, cut)))
    tool = tools[name]
    own, said = taken(tool.definition, arguments)
    try:
        action = tool.parse(own)
    except Exception as error:
        # A tool's own checks may raise anything; the model is told, and can go another way.
        return _Read(call, name, said=said, error=("bad_arguments", _unfit(name, error)))
    return _Read(call, name, action, _touched(tool, action), said)


def _touched(tool: Offered, action: Action) -> tuple[str, ...] | None:
    try:
        return tool.touches(action)
    except Exception:  # then it cannot be told, and the action is run by itself
        return None


def _unread(name: str, error: ValueError, cut: bool) -> str:
    if not cut:
        return f"The arguments of {name} do not fit: {error}"
    return (
        f"The arguments of {name} were cut off, as the answer reached its token limit: send less "
        "at once, in several calls if need be."
    )


def _unfit(name: str, error: Exception) -> str:
    reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    return f"The arguments of {name} do not fit: {reason}"


def _shortened(name: str) -> str:
    return repr(name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…")
