"""Logs and stats of mcpbench: a line for each message, call and result, and four counts."""

from collections.abc import Iterable, Iterator
from typing import Any

from events.condensation import Condensation
from events.content import text_of
from events.entry import Entry
from events.event import AnyEvent
from events.messages import MessageEvent
from events.tools import ActionEvent, AgentErrorEvent
from exports.arguments import arguments_text
from exports.format import About, document
from exports.json_text import document as json_document
from exports.turns import Call, Turn, said_in, text_in, turns


def write(_: About, entries: Iterable[Entry]) -> Iterator[bytes]:
    stats = {"interaction_turns": 0, "tool_calls": 0, "errors": 0, "condensations": 0}
    logs = (line for turn in turns(_counted(entries, stats)) for line in _logged(turn))
    return json_document({}, "logs", logs, lambda: {"stats": stats})


def _counted(entries: Iterable[Entry], stats: dict[str, int]) -> Iterator[Entry]:
    for entry in entries:
        if name := _counts_as(entry.event):
            stats[name] += 1
        yield entry


def _counts_as(event: AnyEvent) -> str | None:
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


def _logged(turn: Turn) -> Iterator[dict[str, Any]]:
    match turn.event:
        case MessageEvent() as event:
            yield {"role": event.source, "content": text_in(said_in(turn))}
        case ActionEvent():
            yield from map(_called, turn.calls)
            yield from map(_result, turn.calls)
        case _:
            return


def _called(call: Call) -> dict[str, Any]:
    function = {"name": call.action.tool_name, "arguments": arguments_text(call.action)}
    asked = {"id": call.id, "type": "function", "function": function}
    return {
        "role": "assistant",
        "content": text_of(call.action.thought),
        "tool_calls": [asked],
    }


def _result(call: Call) -> dict[str, Any]:
    return {
        "role": "tool",
        "tool_call_id": call.id,
        "name": call.action.tool_name,
        "content": text_in(call.result),
    }


MCPBENCH = document("mcpbench", ".json", "logs and stats of mcpbench", write, joins=True)
