"""A line of OpenAI's chat format, as fine-tuning takes it.

An example ends with words or calls of the agent, for nothing can be learned from what comes after.
It has one system message, the first, and the tools of all. What a model thought is left out: the
format has no place for it. An answer that was cut off is there, but not to be learned (weight 0).
Results are text; their images follow as a message of the user.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from events.content import Content, ImageContent
from events.entry import Entry
from exports.chat import ChatMessage, dialogue, function_of, shown
from exports.format import About, document
from exports.json_text import compact
from exports.totals import Totals
from exports.turns import text_in, turns

_NAME = re.compile(r"[^a-zA-Z0-9_-]")
LONGEST_NAME = 64

PICTURES = "The images of these results:"


def write(_: About, entries: Iterable[Entry]) -> Iterator[bytes]:
    """Nothing where the agent never said a word."""
    totals = Totals()
    messages = _examples(dialogue(turns(totals.watch(entries))))
    first = next(messages, None)
    if first is None:
        return
    yield b'{"messages": [' + compact(first)
    for message in messages:
        yield b", " + compact(message)
    yield b"]"
    if totals.tools:
        yield b', "tools": ' + compact([_named(function_of(one)) for one in totals.tools.values()])
    yield b"}\n"


def _examples(told: Iterable[ChatMessage]) -> Iterator[dict[str, Any]]:
    """The messages up to the last one of the agent."""
    held: list[dict[str, Any]] = []
    taught = False
    for message in _formed(told):
        if message["role"] == "system" and (held or taught):
            continue
        held.append(message)
        if message["role"] == "assistant":
            yield from held
            held.clear()
            taught = True


def _formed(told: Iterable[ChatMessage]) -> Iterator[dict[str, Any]]:
    pictures: list[Content] = []
    for message in told:
        if message["role"] == "tool":
            pictures += [one for one in message["content"] if isinstance(one, ImageContent)]
            answered = {"role": "tool", "tool_call_id": message["tool_call_id"]}
            yield answered | {"content": text_in(message["content"])}
            continue
        if pictures:
            seen = [{"type": "text", "text": PICTURES}, *shown(pictures)]
            yield {"role": "user", "content": seen}
            pictures.clear()
        if message["role"] == "assistant":
            yield _assistant(message)
        else:
            yield {"role": message["role"], "content": shown(message["content"])}


def _assistant(message: ChatMessage) -> dict[str, Any]:
    words = text_in(message["content"])
    formed: dict[str, Any] = {"role": "assistant", "content": words or None}
    if calls := message.get("tool_calls"):
        formed["tool_calls"] = [_named(call) for call in calls]
    return formed | ({} if message["whole"] else {"weight": 0})


def _named(call: dict[str, Any]) -> dict[str, Any]:
    """A call, or a tool, with a name that is allowed: a model may have made one up."""
    function = call["function"]
    return call | {"function": function | {"name": _allowed(function["name"])}}


def _allowed(name: str) -> str:
    return _NAME.sub("_", name)[:LONGEST_NAME] or "_"


OPENAI = document(
    "openai", ".jsonl", "a line of OpenAI chat JSONL, for fine-tuning", write, joins=True
)
