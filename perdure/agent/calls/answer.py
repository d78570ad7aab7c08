"""The events of a model's response: a pure function of the recorded completion."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from perdure.agent.calls.arguments import parse_arguments
from perdure.agent.calls.completion import Completion
from perdure.agent.calls.risk import (
    NO_ANNOTATIONS,
    Annotations,
    RiskAssessor,
    assess_actions,
    split_annotations,
)
from perdure.events.content import Message, MessageToolCall, TextContent, ToolDefinition
from perdure.events.custom import AnyAction, CustomAction, parse_custom
from perdure.events.event import AnyEvent, Event, response_of
from perdure.events.messages import MessageEvent
from perdure.events.tools import ActionEvent, AgentErrorEvent, ToolErrorKind

ParseArguments: TypeAlias = Callable[[dict[str, Any]], AnyAction]
"""Turns arguments into an action; raises ValueError with a sentence for the model."""

FindResources: TypeAlias = Callable[[Any], tuple[str, ...] | None]
"""Returns the resources that an action reads or changes, or None if they are unknown; pure."""

MAX_CALLS = 64
"""Calls of one response that are run: a model in a loop makes hundreds."""

MAX_RECORDED_CALLS = 1_000
"""Calls of one response that get events: the summaries of all go through Temporal at once."""

MAX_QUOTED_CHARS = 80
"""Characters of an unknown tool name that are quoted to the model."""

CUT_ARGUMENTS = (
    "were cut off, as the answer reached its token limit: send less at once, in several calls if "
    "need be."
)

ALIASES = {
    "execute_bash": "terminal",
    "bash": "terminal",
    "shell": "terminal",
    "execute_ipython_cell": "ipython",
    "python": "ipython",
    "code_interpreter": "ipython",
    "str_replace_editor": "file_editor",
    "str_replace_based_edit_tool": "file_editor",
}
"""Names that models were trained to use for tools like ours."""

_GARBAGE = re.compile(r"[<>{}()\[\]\"'`\n]|:\d+\s*\Z")
_SEPARATOR = re.compile(r"[./:]")


class OfferedTool(Protocol):
    """The part of a tool that parsing its calls needs."""

    @property
    def definition(self) -> ToolDefinition: ...

    @property
    def parse(self) -> ParseArguments: ...

    @property
    def resources(self) -> FindResources: ...


@dataclass(frozen=True)
class _ParsedCall:
    call: MessageToolCall
    tool_name: str
    action: AnyAction | None = None
    resources: tuple[str, ...] | None = None
    annotations: Annotations = NO_ANNOTATIONS
    error: tuple[ToolErrorKind, str] | None = None


def parse_response(
    completion: Completion,
    tools: Mapping[str, OfferedTool],
    assessor: RiskAssessor | None = None,
) -> list[Event]:
    """Turn a model's response into events: its actions, or its message.

    A call of an unknown tool, or with arguments that do not fit, is an action without `action`,
    answered by an error that the model can correct. Actions come first and errors after them, so
    that nothing stands between the calls of one response; with an assessor their risks come last.
    Each call beyond `MAX_CALLS` is answered by an error of its own, without being parsed. Those
    beyond `MAX_RECORDED_CALLS` are left out: the model sees its response without them.
    """
    calls = completion.message.tool_calls or ()
    if not calls:
        return [
            MessageEvent(
                timestamp=completion.received,
                source="agent",
                llm_message=completion.message,
                llm_response_id=completion.id,
                truncated=True if completion.finish_reason == "length" else None,
            )
        ]
    last = len(calls) if completion.finish_reason == "length" else None
    parsed = [
        _parse_call(call, tools, cut=nth == last)
        if nth <= MAX_CALLS
        else _refuse_call(call, tools, nth)
        for nth, call in enumerate(calls[:MAX_RECORDED_CALLS], 1)
    ]
    events: list[Event] = [
        _action_event(completion, call, first=nth == 0) for nth, call in enumerate(parsed)
    ]
    events += [_error_event(completion, call, *call.error) for call in parsed if call.error]
    if assessor is None:
        return events
    read_only = [name for name, it in tools.items() if it.definition.annotations.readOnlyHint]
    return [*events, *assess_actions(events, assessor, read_only, completion.received)]


def is_recorded_by(completion: Completion, events: Sequence[Event]) -> bool:
    """Tell whether the events are one that holds all of a response, so that it is its record."""
    if len(events) != 1:
        return False
    match events[0]:
        case MessageEvent(llm_message=message):
            reasons: tuple[str | None, ...] = (None, "stop", "length")
        case ActionEvent() as action:
            message = _rebuild_message(action)
            reasons = (None, "tool_calls")
        case _:
            return False
    return (
        message == completion.message
        and completion.finish_reason in reasons
        and _is_unicode(completion.message)
    )


def _is_unicode(message: Message) -> bool:
    """Tell whether a message has no half surrogate pairs, which an event cannot hold."""
    try:
        return bool(message.model_dump_json())
    except ValueError:
        return False


def holds_response(event: AnyEvent, completion: Completion) -> bool:
    """Tell whether the event was made of this response."""
    return response_of(event) == (completion.id, completion.received)


def _rebuild_message(action: ActionEvent) -> Message:
    """Rebuild the message of a response whose only event is this action."""
    return Message(
        role="assistant",
        content=action.thought,
        tool_calls=(action.tool_call,),
        reasoning_content=action.reasoning_content,
        thinking_blocks=action.thinking_blocks,
    )


def _action_event(completion: Completion, parsed: _ParsedCall, *, first: bool) -> ActionEvent:
    """Make the event of a call; only the first one of a response carries the model's thoughts."""
    message = completion.message
    thought = (part for part in message.content if isinstance(part, TextContent) and part.text)
    return ActionEvent(
        timestamp=completion.received,
        thought=tuple(thought) if first else (),
        reasoning_content=message.reasoning_content if first else None,
        thinking_blocks=message.thinking_blocks if first else (),
        action=parsed.action,
        tool_name=parsed.tool_name,
        tool_call_id=parsed.call.id,
        tool_call=parsed.call,
        llm_response_id=completion.id,
        security_risk=parsed.annotations.risk,
        summary=parsed.annotations.summary,
        touches=parsed.resources,
    )


def _error_event(
    completion: Completion, parsed: _ParsedCall, classification: ToolErrorKind, sentence: str
) -> AgentErrorEvent:
    return AgentErrorEvent(
        timestamp=completion.received,
        error=sentence,
        classification=classification,
        tool_name=parsed.tool_name,
        tool_call_id=parsed.call.id,
    )


def _parse_call(
    call: MessageToolCall, tools: Mapping[str, OfferedTool], *, cut: bool
) -> _ParsedCall:
    name = resolve_tool_name(call.name, tools.keys())
    if name is None:
        available = ", ".join(sorted(tools)) or "none"
        quoted = call.name[:MAX_QUOTED_CHARS] + "…" * (len(call.name) > MAX_QUOTED_CHARS)
        sentence = f"There is no tool {quoted!r}. Tools: {available}."
        return _ParsedCall(call, call.name, error=("unknown_tool", sentence))
    try:
        arguments = parse_arguments(call.arguments, cut=cut)
    except ValueError as error:
        reason = CUT_ARGUMENTS if cut else f"do not fit: {error}"
        return _ParsedCall(call, name, error=("bad_arguments", f"The arguments of {name} {reason}"))
    tool = tools[name]
    own_arguments, annotations = split_annotations(tool.definition, arguments)
    try:
        action = tool.parse(own_arguments)
        if isinstance(action, CustomAction):  # one that no package registers cannot be read back
            parse_custom(CustomAction, action)
    except Exception as error:
        # A tool's own checks may raise anything; the model sees the error and can correct it.
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        sentence = f"The arguments of {name} do not fit: {kind}{error}"
        return _ParsedCall(call, name, None, None, annotations, ("bad_arguments", sentence))
    return _ParsedCall(call, name, action, _find_resources(tool, action), annotations)


def _refuse_call(call: MessageToolCall, tools: Collection[str], nth: int) -> _ParsedCall:
    name = resolve_tool_name(call.name, tools) or call.name
    sentence = (
        f"This was call {nth} of one response, of which only the first {MAX_CALLS} are run: "
        "if it is still needed, make it again with fewer calls at once."
    )
    return _ParsedCall(call, name, error=("too_many_calls", sentence))


def _find_resources(tool: OfferedTool, action: AnyAction) -> tuple[str, ...] | None:
    try:
        return tool.resources(action)
    except Exception:  # with unknown resources the action runs alone
        return None


def resolve_tool_name(name: str, tools: Collection[str]) -> str | None:
    """Return the only tool that `name` can mean, or None.

    Tries the name itself, then its letters and digits in any case, without a namespace in front
    (`functions.`) or a model's markers behind (`<|channel|>`), then names that other agents use for
    such a tool.
    """
    if name in tools:
        return name
    spellings = tuple(_spellings(name))
    for key in spellings:
        same = [tool for tool in tools if _letters(tool) == key]
        if same:
            return same[0] if len(same) == 1 else None
    aliased = (tool for alias, tool in ALIASES.items() if _letters(alias) in spellings)
    return next((tool for tool in aliased if tool in tools), None)


def _spellings(name: str) -> Iterator[str]:
    """Yield the letters of the name, then of ever shorter parts of it."""
    bare = name[: match.start()] if (match := _GARBAGE.search(name)) else name
    for part in (name, bare, _SEPARATOR.split(bare)[-1]):
        if letters := _letters(part):
            yield letters


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name)).casefold()
