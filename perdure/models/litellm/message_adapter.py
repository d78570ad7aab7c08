"""Adaptation of a prompt's messages to the capabilities of one model."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from perdure.models.litellm.route import Capabilities

Message: TypeAlias = Mapping[str, Any]

IMAGE_OMITTED = {"type": "text", "text": "[An image was here; this model is not shown images.]"}
IMAGE_MOVED = {"type": "text", "text": "[The image is in the message after the results.]"}
CACHE_CONTROL = {"type": "ephemeral"}

SIGNATURE_SEPARATOR = "__thought__"
"""The separator that litellm puts between the id of Gemini's tool call and its signature."""


def adapt_messages(messages: Iterable[Message], capabilities: Capabilities) -> list[Message]:
    """Remove or replace the parts of messages that the model refuses; the rest is not copied."""
    adapted = [_without_reasoning(message, capabilities) for message in messages]
    if not capabilities.signed_ids:
        adapted = [_without_signatures(message) for message in adapted]
    if not capabilities.vision:
        adapted = [_without_images(message) for message in adapted]
    elif not capabilities.images_in_results:
        adapted = list(_images_after_results(adapted))
    return (
        _add_cache_marks(adapted)
        if capabilities.cache_marks
        else [_flatten_text(message) for message in adapted]
    )


def lacks_thinking(messages: Sequence[Message]) -> bool:
    """Tell whether a tool call since the last user message lacks its thinking blocks.

    Claude refuses to continue thinking from there.
    """
    for message in reversed(messages):
        if message.get("role") == "user":
            return False
        if message.get("tool_calls") and not message.get("thinking_blocks"):
            return True
    return False


def _without_reasoning(message: Message, capabilities: Capabilities) -> Message:
    refused = set()
    if capabilities.reasoning != "text":
        refused.add("reasoning_content")
    if capabilities.reasoning != "blocks":
        refused.add("thinking_blocks")
    if not refused & message.keys():
        return message
    return {name: value for name, value in message.items() if name not in refused}


def _without_signatures(message: Message) -> Message:
    if SIGNATURE_SEPARATOR in str(message.get("tool_call_id", "")):
        return {**message, "tool_call_id": _strip_signature(message["tool_call_id"])}
    calls = message.get("tool_calls") or ()
    if any(SIGNATURE_SEPARATOR in call["id"] for call in calls):
        return {
            **message,
            "tool_calls": [{**call, "id": _strip_signature(call["id"])} for call in calls],
        }
    return message


def _strip_signature(call_id: str) -> str:
    return call_id.partition(SIGNATURE_SEPARATOR)[0]


def _without_images(message: Message) -> Message:
    return _replace_images(message, IMAGE_OMITTED) if _image_parts(message) else message


def _images_after_results(messages: Iterable[Message]) -> Iterator[Message]:
    """Move the images of tool results into a user message after the last result of the group,
    since no other message may stand between its results."""
    waiting: list[Any] = []
    for message in messages:
        if message.get("role") == "tool":
            images = _image_parts(message)
            if images:
                source = f"[What {message.get('name') or 'the tool'} showed:]"
                waiting += [{"type": "text", "text": source}, *images]
            yield _replace_images(message, IMAGE_MOVED) if images else message
            continue
        if waiting:
            yield {"role": "user", "content": waiting}
            waiting = []
        yield message
    if waiting:
        yield {"role": "user", "content": waiting}


def _image_parts(message: Message) -> list[Any]:
    content = message.get("content")
    return [part for part in content if _is_image(part)] if isinstance(content, list) else []


def _is_image(part: Any) -> bool:
    return bool(part.get("type") == "image_url")


def _replace_images(message: Message, note: Mapping[str, str]) -> Message:
    parts = [note if _is_image(part) else part for part in message["content"]]
    return _flatten_text({**message, "content": parts})


def _flatten_text(message: Message) -> Message:
    """Join text-only parts into a plain string: some servers take nothing else."""
    parts = message.get("content")
    if not isinstance(parts, list) or any(part.get("type") != "text" for part in parts):
        return message
    return {**message, "content": "\n".join(part["text"] for part in parts)}


def _add_cache_marks(messages: list[Message]) -> list[Message]:
    """Add two of the four cache marks that the provider allows.

    The first is after the system prompt that all requests of a conversation share, the second at
    the end.
    """
    marked = list(messages)
    for index, message in enumerate(marked):
        if message.get("role") == "system":
            marked[index] = _mark_part(message, 0)
            break
    for index in reversed(range(len(marked))):
        if marked[index].get("role") == "tool":
            # Some hosts of Anthropic's models ignore a mark inside the content of a result.
            marked[index] = {**marked[index], "cache_control": CACHE_CONTROL}
            break
        if marked[index].get("role") == "user":
            marked[index] = _mark_part(marked[index], -1)
            break
    return marked


def _mark_part(message: Message, index: int) -> Message:
    """Mark one part of the message's content; an empty text cannot be marked."""
    content = message.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
    if not parts or parts[index].get("text") == "":
        return message
    parts[index] = {**parts[index], "cache_control": CACHE_CONTROL}
    return {**message, "content": parts}
