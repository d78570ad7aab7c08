"""A line of OpenAI's chat format, as fine-tuning takes it.

An example ends with a message of the agent, for nothing can be learned from what comes after. It
has one system message, the first, and the tools of all. Reasoning is left out: the format has no
place for it. An answer that was cut off is there, but not to be learned (weight 0). Results are
text; their images follow as a message of the user.
"""

import re
from collections.abc import Iterable, Iterator

from perdure.events.content import Content, ImageContent
from perdure.events.entry import Entry
from perdure.exports.chat import ChatMessage, dialogue_messages, function_of
from perdure.exports.content import chat_content, plain_text
from perdure.exports.format import ExportMetadata, single_file_format
from perdure.exports.json_text import Json, compact_json
from perdure.exports.totals import Totals
from perdure.exports.turns import turns

_NAME = re.compile(r"[^a-zA-Z0-9_-]")
MAX_FUNCTION_NAME = 64

IMAGES_NOTE = "The images of these results:"


def write(_: ExportMetadata, entries: Iterable[Entry]) -> Iterator[bytes]:
    """Yield the line; nothing if the agent never answered."""
    totals = Totals()
    messages = _trainable(dialogue_messages(turns(totals.count(entries))))
    first = next(messages, None)
    if first is None:
        return
    yield b'{"messages": [' + compact_json(first)
    for message in messages:
        yield b", " + compact_json(message)
    yield b"]"
    if tools := [_with_valid_name(function_of(tool)) for tool in totals.tools.values()]:
        yield b', "tools": ' + compact_json(tools)
    yield b"}\n"


def _trainable(messages: Iterable[ChatMessage]) -> Iterator[Json]:
    """Yield the messages up to the last one of the agent."""
    pending: list[Json] = []
    has_answer = False
    for message in _format_messages(messages):
        if message["role"] == "system" and (pending or has_answer):
            continue
        pending.append(message)
        if message["role"] == "assistant":
            yield from pending
            pending.clear()
            has_answer = True


def _format_messages(messages: Iterable[ChatMessage]) -> Iterator[Json]:
    images: list[Content] = []
    for message in messages:
        if message["role"] == "tool":
            images += [part for part in message["content"] if isinstance(part, ImageContent)]
            result = {"role": "tool", "tool_call_id": message["tool_call_id"]}
            yield result | {"content": plain_text(message["content"])}
            continue
        if images:
            content = [{"type": "text", "text": IMAGES_NOTE}, *chat_content(images)]
            yield {"role": "user", "content": content}
            images.clear()
        if message["role"] == "assistant":
            yield _assistant(message)
        else:
            yield {"role": message["role"], "content": chat_content(message["content"])}


def _assistant(message: ChatMessage) -> Json:
    text = plain_text(message["content"])
    fields: Json = {"role": "assistant", "content": text or None}
    if calls := message.get("tool_calls"):
        fields["tool_calls"] = [_with_valid_name(call) for call in calls]
    return fields | ({} if message["whole"] else {"weight": 0})


def _with_valid_name(call: Json) -> Json:
    """Give a call or a tool a name that is allowed: a model may have made one up."""
    name = _NAME.sub("_", call["function"]["name"])[:MAX_FUNCTION_NAME] or "_"
    return call | {"function": call["function"] | {"name": name}}


OPENAI = single_file_format(
    "openai", ".jsonl", "a line of OpenAI chat JSONL, for fine-tuning", write, is_one_line=True
)
