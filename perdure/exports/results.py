"""The results format, written beside a log when a turn or the conversation ends.

An assistant message with tool calls has no text, even if the model wrote some: the format has it
so. Images are named in the text, for content is always a string; for a model whose `vision` is
False the text says that there was one, as the model has it.
"""

from collections.abc import Iterable, Iterator

from perdure.events.content import cut_middle
from perdure.events.entry import Entry
from perdure.exports.chat import ChatMessage, dialogue_messages
from perdure.exports.content import plain_text
from perdure.exports.format import ExportMetadata, single_file_format
from perdure.exports.json_text import Json, json_document
from perdure.exports.turns import turns


def write(about: ExportMetadata, entries: Iterable[Entry]) -> Iterator[bytes]:
    return json_document({}, "messages", messages(entries, about.max_message_chars, about.vision))


def messages(
    entries: Iterable[Entry], max_message_chars: int | None = None, vision: bool | None = None
) -> Iterator[Json]:
    for message in dialogue_messages(turns(entries)):
        yield _format_message(message, max_message_chars, vision)


def _format_message(
    message: ChatMessage, max_message_chars: int | None, vision: bool | None
) -> Json:
    parts = tuple(message["content"])
    if message["role"] == "tool":
        parts = cut_middle(parts, max_message_chars)
    content = plain_text(parts, shows_images=vision is not False)
    if message["role"] != "assistant":
        names = ("role", "tool_call_id", "name")
        return {name: message[name] for name in names if name in message} | {"content": content}
    calls = [_call(call) for call in message.get("tool_calls", ())] or None
    fields = {
        "content": None if calls else content,
        "refusal": None,
        "role": "assistant",
        "annotations": None,
        "audio": None,
        "function_call": None,
        "tool_calls": calls,
    }
    return fields | ({"reasoning_content": message["reasoning"]} if message["reasoning"] else {})


def _call(call: Json) -> Json:
    function = {name: call["function"][name] for name in ("arguments", "name")}
    return {"id": call["id"], "function": function, "type": "function", "index": -1}


RESULTS = single_file_format(
    "results", ".json", "messages, as in llm_messages.json", write, is_one_line=True
)
