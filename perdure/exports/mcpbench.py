"""Logs and statistics of mcpbench: one dict a message, call or result, and four counts.

The rules are those of the seed's `EventToLogsConverter` and `EventStatsCollector`. A call that
could not be parsed is no action there: it has no log and is not counted, but its error is.
"""

import json
from collections.abc import Iterable, Iterator

from perdure.events.condensation import Condensation
from perdure.events.content import join_text
from perdure.events.entry import Entry
from perdure.events.event import AnyEvent
from perdure.events.messages import MessageEvent
from perdure.events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from perdure.exports.format import ExportMetadata, single_file_format
from perdure.exports.json_text import Json


def convert_events_to_logs(events: Iterable[AnyEvent]) -> list[Json]:
    """Convert events to mcpbench's logs: those of the conversation's two sides, in log order.

    A message is `{role, content}` with the role `user` or `agent`; a call `{role: assistant,
    content, tool_calls}`, with its validated action as JSON in `arguments`; a result `{role: tool,
    tool_call_id, name, content}`. Images are left out. Errors, rejections and messages of the
    system have no log.
    """
    return list(_iterate_logs(events))


def convert_events_to_jsonl(events: Iterable[AnyEvent]) -> str:
    """Convert events to the text of mcpbench's `history.jsonl`: one log a line, in ASCII."""
    return "".join(_iterate_lines(events))


def count_event_statistics(events: Iterable[AnyEvent]) -> dict[str, int]:
    """Count `interaction_turns` (messages of the user), `tool_calls`, `errors`, `condensations`."""
    statistics = {"interaction_turns": 0, "tool_calls": 0, "errors": 0, "condensations": 0}
    for event in events:
        match event:
            case MessageEvent(source="user"):
                statistics["interaction_turns"] += 1
            case ActionEvent() if event.action is not None:
                statistics["tool_calls"] += 1
            case AgentErrorEvent():
                statistics["errors"] += 1
            case Condensation():
                statistics["condensations"] += 1
    return statistics


def _iterate_logs(events: Iterable[AnyEvent]) -> Iterator[Json]:
    for event in events:
        match event:
            case MessageEvent(source="user" | "agent"):
                yield {"role": event.source, "content": join_text(event.llm_message.content)}
            case ActionEvent() if event.action is not None:
                yield _call_log(event, event.action.model_dump_json())
            case ObservationEvent():
                yield {
                    "role": "tool",
                    "tool_call_id": event.tool_call_id,
                    "name": event.tool_name,
                    "content": join_text(event.observation.content),
                }


def _call_log(event: ActionEvent, arguments: str) -> Json:
    function = {"name": event.tool_name, "arguments": arguments}
    tool_call = {"id": event.tool_call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": join_text(event.thought), "tool_calls": [tool_call]}


def _iterate_lines(events: Iterable[AnyEvent]) -> Iterator[str]:
    return (json.dumps(log) + "\n" for log in _iterate_logs(events))


def write_history(_: ExportMetadata, entries: Iterable[Entry]) -> Iterator[bytes]:
    return (line.encode() for line in _iterate_lines(entry.event for entry in entries))


def write_statistics(_: ExportMetadata, entries: Iterable[Entry]) -> Iterator[bytes]:
    yield json.dumps(count_event_statistics(entry.event for entry in entries)).encode() + b"\n"


MCPBENCH = single_file_format(
    "mcpbench",
    ".jsonl",
    "history.jsonl of mcpbench: a message, call or result a line",
    write_history,
)
MCPBENCH_STATISTICS = single_file_format(
    "mcpbench-statistics",
    ".json",
    "mcpbench's counts: turns, calls, errors and condensations",
    write_statistics,
    is_one_line=True,
)
