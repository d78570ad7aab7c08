"""The results format: what is written beside a log when its conversation closes.

An assistant message with tool calls has no words, whatever it said with them: the format has it so.
Images are named in the text, for content is always a string.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from events.entry import Entry
from exports.chat import ChatMessage, dialogue
from exports.format import About, document
from exports.json_text import document as json_document
from exports.turns import text_in, turns


def write(_: About, entries: Iterable[Entry]) -> Iterator[bytes]:
    return json_document({}, "messages", messages(entries))


def messages(entries: Iterable[Entry]) -> Iterator[dict[str, Any]]:
    return map(_formed, dialogue(turns(entries)))


def _formed(message: ChatMessage) -> dict[str, Any]:
    content = text_in(message["content"])
    match message["role"]:
        case "assistant":
            return _assistant(message, content)
        case "tool":
            told = {key: message[key] for key in ("role", "tool_call_id", "name")}
            return told | {"content": content}
        case role:
            return {"role": role, "content": content}


def _assistant(message: ChatMessage, content: str) -> dict[str, Any]:
    calls = [_call(call) for call in message.get("tool_calls", ())] or None
    formed = {
        "content": None if calls else content,
        "refusal": None,
        "role": "assistant",
        "annotations": None,
        "audio": None,
        "function_call": None,
        "tool_calls": calls,
    }
    return formed | ({"reasoning_content": message["reasoning"]} if message["reasoning"] else {})


def _call(call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"]
    return {
        "id": call["id"],
        "function": {"arguments": function["arguments"], "name": function["name"]},
        "type": "function",
        "index": -1,
    }


RESULTS = document("results", ".json", "messages, as in llm_messages.json", write, joins=True)
