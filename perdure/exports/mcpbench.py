"""Logs and stats of mcpbench: a line for each message, call and result, and four counts."""

from collections.abc import Iterable, Iterator

from perdure.events.condensation import Condensation
from perdure.events.content import join_text
from perdure.events.entry import Entry
from perdure.events.messages import MessageEvent
from perdure.events.tools import ActionEvent, AgentErrorEvent
from perdure.exports.content import plain_text
from perdure.exports.format import ExportMetadata, single_file_format
from perdure.exports.json_text import Json, json_document
from perdure.exports.turns import Call, Turn, turns

COUNTERS = {ActionEvent: "tool_calls", AgentErrorEvent: "errors", Condensation: "condensations"}
"""The counts beside `interaction_turns`, which are the messages of the user."""


def write(_: ExportMetadata, entries: Iterable[Entry]) -> Iterator[bytes]:
    stats = dict.fromkeys(("interaction_turns", *COUNTERS.values()), 0)
    logs = (line for turn in turns(_count(entries, stats)) for line in _turn_lines(turn))
    return json_document({}, "logs", logs, lambda: {"stats": stats})


def _count(entries: Iterable[Entry], stats: dict[str, int]) -> Iterator[Entry]:
    for entry in entries:
        if isinstance(entry.event, MessageEvent) and entry.event.source == "user":
            stats["interaction_turns"] += 1
        elif name := COUNTERS.get(type(entry.event)):
            stats[name] += 1
        yield entry


def _turn_lines(turn: Turn) -> Iterator[Json]:
    if isinstance(turn.event, MessageEvent):
        yield {"role": turn.event.source, "content": plain_text(turn.content)}
    yield from map(_call_line, turn.calls)
    yield from map(_result_line, turn.calls)


def _call_line(call: Call) -> Json:
    function = {"name": call.action.tool_name, "arguments": call.arguments_text}
    tool_call = {"id": call.id, "type": "function", "function": function}
    thought = join_text(call.action.thought)
    return {"role": "assistant", "content": thought, "tool_calls": [tool_call]}


def _result_line(call: Call) -> Json:
    head = {"role": "tool", "tool_call_id": call.id, "name": call.action.tool_name}
    return head | {"content": plain_text(call.result)}


MCPBENCH = single_file_format(
    "mcpbench", ".json", "logs and stats of mcpbench", write, is_one_line=True
)
