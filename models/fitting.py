"""The messages of a prompt, as one model takes them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from models.features import Features

Message: TypeAlias = Mapping[str, Any]

UNSEEN = {"type": "text", "text": "[An image was here; this model is not shown images.]"}
MOVED = {"type": "text", "text": "[The image is in the message after the results.]"}
EPHEMERAL = {"type": "ephemeral"}

SIGNATURE = "__thought__"
"""What litellm puts between the id of Gemini's tool call and its signature."""


def fitted(messages: Iterable[Message], features: Features) -> list[Message]:
    """The messages with nothing in them that the model refuses; what fits is not copied."""
    kept = [_without_reasoning(message, features) for message in messages]
    if not features.signed_ids:
        kept = [_without_signatures(message) for message in kept]
    if not features.vision:
        kept = [_without_images(message) for message in kept]
    elif not features.images_in_results:
        kept = list(_images_after_results(kept))
    return _marked(kept) if features.cache_marks else [_flat(message) for message in kept]


def lacks_thinking(messages: Sequence[Message]) -> bool:
    """Whether a call since the user last spoke stands without the thinking that led to it.

    Claude refuses to think on from there.
    """
    for message in reversed(messages):
        if message.get("role") == "user":
            return False
        if message.get("tool_calls") and not message.get("thinking_blocks"):
            return True
    return False


def _without_reasoning(message: Message, features: Features) -> Message:
    refused = set()
    if features.reasoning != "text":
        refused.add("reasoning_content")
    if features.reasoning != "blocks":
        refused.add("thinking_blocks")
    if not refused & message.keys():
        return message
    return {name: value for name, value in message.items() if name not in refused}


def _without_signatures(message: Message) -> Message:
    if SIGNATURE in str(message.get("tool_call_id", "")):
        return {**message, "tool_call_id": _unsigned(message["tool_call_id"])}
    calls = message.get("tool_calls") or ()
    if any(SIGNATURE in call["id"] for call in calls):
        return {**message, "tool_calls": [{**call, "id": _unsigned(call["id"])} for call in calls]}
    return message


def _unsigned(call_id: str) -> str:
    return call_id.partition(SIGNATURE)[0]


def _without_images(message: Message) -> Message:
    return _replaced(message, UNSEEN) if _images(message) else message


def _images_after_results(messages: Iterable[Message]) -> Iterator[Message]:
    """Nothing may stand between the results of a batch, so images wait for its end."""
    waiting: list[Any] = []
    for message in messages:
        if message.get("role") == "tool":
            images = _images(message)
            if images:
                source = f"[What {message.get('name') or 'the tool'} showed:]"
                waiting += [{"type": "text", "text": source}, *images]
            yield _replaced(message, MOVED) if images else message
            continue
        if waiting:
            yield {"role": "user", "content": waiting}
            waiting = []
        yield message
    if waiting:
        yield {"role": "user", "content": waiting}


def _images(message: Message) -> list[Any]:
    content = message.get("content")
    return [part for part in content if _is_image(part)] if isinstance(content, list) else []


def _is_image(part: Any) -> bool:
    return bool(part.get("type") == "image_url")


def _replaced(message: Message, note: Mapping[str, str]) -> Message:
    parts = [note if _is_image(part) else part for part in message["content"]]
    return _flat({**message, "content": parts})


def _flat(message: Message) -> Message:
    """Plain text where there is nothing but text: some take nothing else."""
    parts = message.get("content")
    if not isinstance(parts, list) or any(part.get("type") != "text" for part in parts):
        return message
    return {**message, "content": "\n".join(part["text"] for part in parts)}


def _marked(messages: list[Message]) -> list[Message]:
    """The messages with marks where the provider's cache is to end: two of the four it allows.

    The first is after what no two requests of a conversation differ in, the second at the end.
    """
    marked = list(messages)
    for at, message in enumerate(marked):
        if message.get("role") == "system":
            marked[at] = _mark_part(message, 0)
            break
    for at in reversed(range(len(marked))):
        if marked[at].get("role") == "tool":
            # Inside the content of a result some of Anthropic's hosts overlook it.
            marked[at] = {**marked[at], "cache_control": EPHEMERAL}
            break
        if marked[at].get("role") == "user":
            marked[at] = _mark_part(marked[at], -1)
            break
    return marked


def _mark_part(message: Message, which: int) -> Message:
    """The message with that part of its content marked; an empty text cannot be."""
    content = message.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
    if not parts or parts[which].get("text") == "":
        return message
    parts[which] = {**parts[which], "cache_control": EPHEMERAL}
    return {**message, "content": parts}
