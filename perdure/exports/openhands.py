"""Events in the format of the OpenHands SDK's models, version 1.58.

Each event stays one event, at its place and under its id: what a condensation forgot, and where its
summary stands, are the same in both. A kind that OpenHands has keeps its fields, without those that
are ours alone. Any other kind is written as one of theirs:

* `RecallEvent`: a message from the environment, which they join to the user's message before it
* `StuckEvent`: an update of `stuck`; `WaitEvent`, `QuestionEvent` and `SignalEvent`: updates of
  `wait`, `question` and `signal`, as a message may not stand between a call and its result
* `UnknownEvent`: an update named by its kind, with all its fields

A tool is written as their own of that name, with its parameters, or else as an MCP tool. Their
models know the tools, actions and observations once `openhands.tools` has been imported.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from perdure.events.actions import FinishAction, IPythonRunCellAction, MCPToolAction
from perdure.events.condensation import Condensation
from perdure.events.content import Message, TextContent, ToolDefinition
from perdure.events.control import ConversationErrorEvent, InterruptEvent, StuckEvent
from perdure.events.entry import Entry
from perdure.events.event import AnyEvent, UnknownEvent
from perdure.events.messages import MessageEvent, RecallEvent, SystemPromptEvent
from perdure.events.observations import IPythonRunCellObservation, MCPToolObservation
from perdure.events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from perdure.events.usage import Usage
from perdure.events.waiting import QuestionEvent, SignalEvent, WaitEvent
from perdure.exports.format import ExportMetadata, Format, Part
from perdure.exports.json_text import Json, compact_json
from perdure.exports.totals import Totals

OWN_FIELDS = {
    "touches",
    "message_id",
    "actor",
    "traceparent",
    "status_detail",
    "truncated",
    "forgotten_seqs",
    "forgotten_size",
    "summary_size",
    "state",
    "reopen",
    "run",
    "ended_by",
}
"""Fields that no OpenHands event has."""

CLASS_PREFIXES = {
    "terminal": "Terminal",
    "file_editor": "FileEditor",
    "task_tracker": "TaskTracker",
    "think": "Think",
    "finish": "Finish",
}
"""Beginning of the names of a tool's classes, by the name of the tool."""

BUILT_IN_TOOLS = ("finish", "think")
"""Tools that OpenHands' agents have by default."""

FAILURE_KINDS = {
    "auth": ("settings", "auth"),
    "quota": ("settings", "quota max_iterations max_budget max_tokens max_events deadline"),
    "rate_limit": ("retry", "rate_limit"),
    "config": ("settings", "model_not_found bad_request tool_not_found extension_not_found"),
    "transient": ("retry", "overloaded timeout connection malformed"),
    "agent_action": (
        "retry",
        "unknown_tool bad_arguments too_many_calls interrupted context_overflow",
    ),
    "internal": ("none", "internal tool_raised"),
}
"""OpenHands' kinds of failure, each with what the user can do, and our codes for it."""

FAILURES = {
    code: (kind, action)
    for kind, (action, codes) in FAILURE_KINDS.items()
    for code in codes.split()
}

_ID = re.compile(r"[0-9a-fA-F-]{8,}")
"""Ids that OpenHands accepts for an event."""

STATUSES = {"closed": "finished", "waiting_for_answer": "idle", "waiting": "running"}
"""OpenHands' nearest status for those that it lacks: an agent that asks is ready for a message."""


def openhands_event(event: AnyEvent, native: Collection[str] | None = None) -> Json:
    """Convert an event to the JSON object that `Event.model_validate` of openhands-sdk reads.

    With `native`, any other tool is written as an MCP tool, but for those that every agent has.
    """
    match event:
        case ActionEvent(action=action) if action is not None and _is_foreign(event, native):
            if isinstance(action, MCPToolAction):
                return _fields(event)
            data = action.model_dump(mode="json", exclude={"kind"}, exclude_none=True)
            return _fields(event) | {"action": MCPToolAction(data=data).model_dump(mode="json")}
        case ObservationEvent(observation=observation) if _is_foreign(event, native):
            if isinstance(observation, MCPToolObservation):
                return _fields(event)
            other = MCPToolObservation(
                content=observation.content,
                is_error=observation.is_error,
                tool_name=event.tool_name,
            )
            return _fields(event) | {"observation": other.model_dump(mode="json")}
        case UnknownEvent():
            return _update(event, event.kind, event.raw)
        case StuckEvent():
            pattern = event.model_dump(include={"pattern", "first_seq", "last_seq", "count"})
            return _update(event, "stuck", pattern)
        case WaitEvent() | QuestionEvent() | SignalEvent():
            own = {"id", "timestamp", "source", "kind", "actor"}
            key = event.kind.removesuffix("Event").lower()
            return _update(event, key, event.model_dump(mode="json", exclude=own))
        case RecallEvent():
            content = (TextContent(text=event.content),) if event.content else ()
            message = MessageEvent(
                id=event.id,
                timestamp=event.timestamp,
                source=event.source,
                llm_message=Message(role="user", content=content),
                activated_skills=event.skills,
                sender="recall",
            )
            return _fields(message)
        case ActionEvent(action=FinishAction(outputs=dict())):
            fields = _fields(event)
            del fields["action"]["outputs"]
            return fields
        case SystemPromptEvent():
            return _fields(event) | {"tools": [_tool(tool, native) for tool in event.tools]}
        case AgentErrorEvent():
            failure = _failure(event.classification)
            return _fields(event, "action_id") | {"classification": failure}
        case ConversationErrorEvent():
            return _fields(event) | {"classification": _failure(event.code)}
        case InterruptEvent():
            return _fields(event, "reason")
        case Condensation():
            # No model response is behind a plain cut, and their field is required.
            return _fields(event) | {"llm_response_id": event.llm_response_id or ""}
        case _:
            return _fields(event)


def _fields(event: AnyEvent, *ours: str) -> Json:
    """Return all fields, also absent ones: some of theirs are required, if only as null."""
    return event.model_dump(mode="json", exclude={*OWN_FIELDS, *ours})


def _update(event: AnyEvent, key: str, value: Any) -> Json:
    return {
        "id": event.id,
        "timestamp": event.timestamp,
        "source": "environment",
        "kind": "ConversationStateUpdateEvent",
        "key": key,
        "value": value,
    }


def _is_foreign(event: ActionEvent | ObservationEvent, native: Collection[str] | None) -> bool:
    """Tell whether OpenHands is to see an action, or its result, as those of an MCP tool."""
    content = event.action if isinstance(event, ActionEvent) else event.observation
    if isinstance(content, IPythonRunCellAction | IPythonRunCellObservation):
        return True
    return native is not None and event.tool_name not in (*BUILT_IN_TOOLS, *native)


def _tool(tool: ToolDefinition, native: Collection[str] | None) -> Json:
    head = {"description": tool.description, "annotations": tool.annotations.model_dump()}
    is_native = native is None or tool.name in (*BUILT_IN_TOOLS, *native)
    if is_native and (name := CLASS_PREFIXES.get(tool.name)):
        return head | _classes(f"{name}Tool", name)
    schema = {"name": tool.name, "inputSchema": tool.parameters}
    return head | _classes("MCPToolDefinition", "MCPTool") | {"mcp_tool": head | schema}


def _classes(kind: str, name: str) -> Json:
    return {"kind": kind, "action_type": f"{name}Action", "observation_type": f"{name}Observation"}


def _failure(code: str) -> Json:
    kind, action = FAILURES.get(code, ("unknown", "none"))
    return {"kind": kind, "retryable": action == "retry", "user_action": action}


def parts(about: ExportMetadata, entries: Iterable[Entry]) -> Iterator[Part]:
    """Yield the files of the folder in which the OpenHands SDK stores a conversation.

    `Conversation(persistence_dir=FOLDER, conversation_id=ID)` finds it below FOLDER under the id's
    hex digits. The agent has the tools that OpenHands has too; of the others it has the recorded
    calls. Events are numbered without a gap even if the log has one: reading stops at a gap.
    """
    folder, totals = about.conversation_id.replace("-", ""), Totals()
    for index, entry in enumerate(totals.count(entries)):
        event = with_valid_id(entry)
        name = f"events/event-{index:05d}-{event['id']}.json"
        yield Part(f"{folder}/{name}", compact_json(event))
    yield Part(f"{folder}/base_state.json", compact_json(_state(about, totals)))


def with_valid_id(entry: Entry, native: Collection[str] | None = None) -> Json:
    """Convert the event; replace an id from another kind of log that OpenHands refuses."""
    event = openhands_event(entry.event, native)
    if _ID.fullmatch(event["id"]):
        return event
    return event | {"id": f"00000000-0000-0000-0000-{entry.seq:012d}"}


def _state(about: ExportMetadata, totals: Totals) -> Json:
    model = about.model or "unknown"
    names = [name for name in totals.tools if name in CLASS_PREFIXES and name not in BUILT_IN_TOOLS]
    return {
        "id": about.conversation_id,
        "agent": {
            "kind": "Agent",
            "llm": {"model": model, "usage_id": "agent"},
            "tools": [{"name": name, "params": {}} for name in names],
        },
        "workspace": {"kind": "LocalWorkspace", "working_dir": about.workspace or "workspace"},
        "persistence_dir": about.conversation_id.replace("-", ""),
        "execution_status": STATUSES.get(about.status, about.status),
        "stats": {"usage_to_metrics": {"agent": openhands_metrics(model, totals.total)}},
        "tags": {"title": about.title[:256]} if about.title else {},
    }


def openhands_metrics(model: str, usage: Usage) -> Json:
    """Convert the usage of a conversation to OpenHands' metrics."""
    return {
        "model_name": model,
        "accumulated_cost": usage.cost,
        "accumulated_token_usage": {
            "model": model,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cache_read_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
        },
    }


OPENHANDS = Format("openhands", "", "a folder that the OpenHands SDK opens", parts)
