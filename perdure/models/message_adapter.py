"""Adaptation of a prompt's messages to the capabilities of one model."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeAlias

from perdure.models.capabilities import Capabilities

Message: TypeAlias = Mapping[str, Any]

IMAGE_OMITTED = {"type": "text", "text": "[An image was here; this model is not shown images.]"}
IMAGE_MOVED = {"type": "text", "text": "[The image is in the message after the results.]"}
CACHE_CONTROL = {"type": "ephemeral"}
REASONING_FIELDS = {"text": "reasoning_content", "blocks": "thinking_blocks"}

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
    if capabilities.cache_marks:
        return _add_cache_marks(adapted)
    return [_flatten_text(message) for message in adapted]


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
    refused = {field for form, field in REASONING_FIELDS.items() if form != capabilities.reasoning}
    if not refused & message.keys():
        return message
    return {name: value for name, value in message.items() if name not in refused}


def _without_signatures(message: Message) -> Message:
    call_id, signature, _ = str(message.get("tool_call_id", "")).partition(SIGNATURE_SEPARATOR)
    if signature:
        return {**message, "tool_call_id": call_id}
    calls = message.get("tool_calls") or ()
    if any(SIGNATURE_SEPARATOR in call["id"] for call in calls):
        plain = [{**call, "id": call["id"].partition(SIGNATURE_SEPARATOR)[0]} for call in calls]
        return {**message, "tool_calls": plain}
    return message


def _without_images(message: Message) -> Message:
    return _replace_images(message, IMAGE_OMITTED) if _image_parts(message) else message


def _images_after_results(messages: Iterable[Message]) -> Iterator[Message]:
    """Move the images of tool results into a user message after the last result of the group."""
    for is_result, group in groupby(messages, lambda message: message.get("role") == "tool"):
        moved: list[Any] = []
        for message in group:
            images = _image_parts(message) if is_result else []
            if images:
                source = f"[What {message.get('name') or 'the tool'} showed:]"
                moved += [{"type": "text", "text": source}, *images]
            yield _replace_images(message, IMAGE_MOVED) if images else message
        if moved:
            yield {"role": "user", "content": moved}


def _image_parts(message: Message) -> list[Any]:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return [part for part in parts if part.get("type") == "image_url"]


def _replace_images(message: Message, note: Mapping[str, str]) -> Message:
    parts = [note if part.get("type") == "image_url" else part for part in message["content"]]
    return _flatten_text({**message, "content": parts})


def _flatten_text(message: Message) -> Message:
    """Join text-only parts into a plain string: some servers take nothing else."""
    parts = message.get("content")
    if not isinstance(parts, list) or any(part.get("type") != "text" for part in parts):
        return message
    return {**message, "content": "\n".join(part["text"] for part in parts)}


def _add_cache_marks(messages: list[Message]) -> list[Message]:
    """Add two of the four cache marks that a provider allows: at the system prompt and the end."""
    marked, roles = list(messages), [message.get("role") for message in messages]
    if "system" in roles:
        first = roles.index("system")
        marked[first] = _mark_part(marked[first], 0)
    last = max((at for at, role in enumerate(roles) if role in ("tool", "user")), default=None)
    if last is not None and roles[last] == "tool":
        # Some hosts of Anthropic's models ignore a mark inside the content of a result.
        marked[last] = {**marked[last], "cache_control": CACHE_CONTROL}
    elif last is not None:
        marked[last] = _mark_part(marked[last], -1)
    return marked


def _mark_part(message: Message, index: int) -> Message:
    """Mark one part of the message's content; an empty text cannot be marked."""
    content = message.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
    if not parts or parts[index].get("text") == "":
        return message
    parts[index] = {**parts[index], "cache_control": CACHE_CONTROL}
    return {**message, "content": parts}
