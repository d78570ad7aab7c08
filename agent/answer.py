"""From a model's answer to events: a pure function of what was recorded."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from agent.completion import Completion
from events.actions import Action
from events.content import MessageToolCall, TextContent
from events.event import Event
from events.messages import MessageEvent
from events.tools import ActionEvent, AgentErrorEvent, ToolErrorKind

Parse: TypeAlias = Callable[[str], Action]
"""Reads a call's raw arguments; raises ValueError with a sentence for the model."""

MOST_CALLS = 64
"""Calls of one answer that become actions: a model in a loop makes hundreds."""


def events_of(completion: Completion, tools: Mapping[str, Parse]) -> list[Event]:
    """The events an answer stands for: its actions, or its message.

    A call of an unknown tool, or with arguments that do not fit, is an action without `action`,
    answered by an error that the model can mend. The actions come first and the errors after
    them, so that nothing stands between the calls of one answer. Calls beyond `MOST_CALLS` are
    left out: the model sees its answer without them, and makes them again if it needs to.
    """
    calls = (completion.message.tool_calls or ())[:MOST_CALLS]
    if not calls:
        return [_message(completion)]
    read = [_read(call, tools) for call in calls]
    actions: list[Event] = [
        _action(completion, call, action, first=nth == 0)
        for nth, (call, (action, _)) in enumerate(zip(calls, read, strict=True))
    ]
    return actions + list(_errors(completion, calls, [error for _, error in read]))


def _message(completion: Completion) -> MessageEvent:
    return MessageEvent(
        timestamp=completion.received,
        source="agent",
        llm_message=completion.message,
        llm_response_id=completion.id,
    )


def _action(
    completion: Completion, call: MessageToolCall, action: Action | None, *, first: bool
) -> ActionEvent:
    """Only the first action of an answer carries what was thought before it."""
    message = completion.message
    thought = (part for part in message.content if isinstance(part, TextContent) and part.text)
    return ActionEvent(
        timestamp=completion.received,
        thought=tuple(thought) if first else (),
        reasoning_content=message.reasoning_content if first else None,
        thinking_blocks=message.thinking_blocks if first else (),
        action=action,
        tool_name=call.name,
        tool_call_id=call.id,
        tool_call=call,
        llm_response_id=completion.id,
    )


Error: TypeAlias = tuple[ToolErrorKind, str]


def _read(call: MessageToolCall, tools: Mapping[str, Parse]) -> tuple[Action | None, Error | None]:
    parse = tools.get(call.name)
    if parse is None:
        have = ", ".join(sorted(tools)) or "none"
        return None, ("unknown_tool", f"There is no tool {call.name!r}. Tools: {have}.")
    try:
        return parse(call.arguments), None
    except ValueError as error:
        return None, ("bad_arguments", f"The arguments of {call.name} do not fit: {error}")


def _errors(
    completion: Completion, calls: tuple[MessageToolCall, ...], errors: list[Error | None]
) -> Iterator[AgentErrorEvent]:
    for call, error in zip(calls, errors, strict=True):
        if error is not None:
            yield AgentErrorEvent(
                timestamp=completion.received,
                error=error[1],
                classification=error[0],
                tool_name=call.name,
                tool_call_id=call.id,
            )
