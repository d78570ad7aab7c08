"""Logs and stats of mcpbench: a line for each message, call and result, and four counts."""

from collections.abc import Iterable, Iterator
from typing import Any

from perdure.events.condensation import Condensation
from perdure.events.content import join_text
from perdure.events.entry import Entry
from perdure.events.event import AnyEvent
from perdure.events.messages import MessageEvent
from perdure.events.tools import ActionEvent, AgentErrorEvent
from perdure.exports.arguments import arguments_text
from perdure.exports.format import ExportMetadata, single_file_format
from perdure.exports.json_text import json_document as json_document
from perdure.exports.turns import Call, Turn, message_content, plain_text, turns


def write(_: ExportMetadata, entries: Iterable[Entry]) -> Iterator[bytes]:
    stats = {"interaction_turns": 0, "tool_calls": 0, "errors": 0, "condensations": 0}
    logs = (line for turn in turns(_count_events(entries, stats)) for line in _turn_lines(turn))
    return json_document({}, "logs", logs, lambda: {"stats": stats})


def _count_events(entries: Iterable[Entry], stats: dict[str, int]) -> Iterator[Entry]:
    for entry in entries:
        if name := _counter_of(entry.event):
            stats[name] += 1
        yield entry


def _counter_of(event: AnyEvent) -> str | None:
    match event:
        case MessageEvent(source="user"):
            return "interaction_turns"
        case ActionEvent():
            return "tool_calls"
        case AgentErrorEvent():
            return "errors"
        case Condensation():
            return "condensations"
        case _:
            return None


def _turn_lines(turn: Turn) -> Iterator[dict[str, Any]]:
    match turn.event:
        case MessageEvent() as event:
            yield {"role": event.source, "content": plain_text(message_content(turn))}
        case ActionEvent():
            yield from map(_call_line, turn.calls)
            yield from map(_result_line, turn.calls)
        case _:
            return


def _call_line(call: Call) -> dict[str, Any]:
    function = {"name": call.action.tool_name, "arguments": arguments_text(call.action)}
    tool_call = {"id": call.id, "type": "function", "function": function}
    return {
        "role": "assistant",
        "content": join_text(call.action.thought),
        "tool_calls": [tool_call],
    }


def _result_line(call: Call) -> dict[str, Any]:
    return {
        "role": "tool",
        "tool_call_id": call.id,
        "name": call.action.tool_name,
        "content": plain_text(call.result),
    }


MCPBENCH = single_file_format(
    "mcpbench", ".json", "logs and stats of mcpbench", write, is_one_line=True
)
