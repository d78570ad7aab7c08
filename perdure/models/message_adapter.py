"""Adaptation of a prompt's messages to the capabilities of one model."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeAlias

from perdure.events.images import OMITTED_IMAGE
from perdure.models.capabilities import Capabilities

Message: TypeAlias = Mapping[str, Any]

IMAGE_OMITTED = {"type": "text", "text": OMITTED_IMAGE}
IMAGE_MOVED = {"type": "text", "text": "[The image is in the message after the results.]"}
CACHE_CONTROL = {"type": "ephemeral"}
REASONING_FIELDS = {"text": "reasoning_content", "blocks": "thinking_blocks"}

SIGNATURE_SEPARATOR = "__thought__"
"""The separator that litellm puts between the id of Gemini's tool call and its signature."""


def adapt_messages(messages: Iterable[Message], capabilities: Capabilities) -> list[Message]:
    """Remove or replace the parts of messages that the model refuses; the rest is not copied."""
    adapted = [_without_refused(message, capabilities) for message in messages]
    if capabilities.vision and not capabilities.images_in_results:
        adapted = list(_images_after_results(adapted))
    if capabilities.cache_marks:
        for index in find_cache_marks(adapted):
            adapted[index] = _mark(adapted[index])
        return adapted
    return [_flatten_text(message) for message in adapted]


def adapt_message(message: Message, capabilities: Capabilities, *, is_marked: bool) -> Message:
    """Adapt one message of a prompt, for a model that takes images in tool results."""
    adapted = _without_refused(message, capabilities)
    if not capabilities.cache_marks:
        return _flatten_text(adapted)
    return _mark(adapted) if is_marked else adapted


def find_cache_marks(messages: Sequence[Message]) -> set[int]:
    """Find the places of two of the four cache marks that a provider allows.

    One is at the system prompt and one at the end, at the last message that is no answer.
    """
    forwards, backwards = range(len(messages)), reversed(range(len(messages)))
    first = next((at for at in forwards if messages[at].get("role") == "system"), None)
    last = next((at for at in backwards if messages[at].get("role") in ("tool", "user")), None)
    return {at for at in (first, last) if at is not None}


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


def _without_refused(message: Message, capabilities: Capabilities) -> Message:
    adapted = _without_reasoning(message, capabilities)
    if not capabilities.signed_ids:
        adapted = _without_signatures(adapted)
    return adapted if capabilities.vision else _without_images(adapted)


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


def _mark(message: Message) -> Message:
    """Mark a message: the system prompt at its part that never changes, others at their end."""
    if message.get("role") == "tool":
        # Some hosts of Anthropic's models ignore a mark inside the content of a result.
        return {**message, "cache_control": CACHE_CONTROL}
    return _mark_part(message, 0 if message.get("role") == "system" else -1)


def _mark_part(message: Message, index: int) -> Message:
    """Mark one part of the message's content; an empty text cannot be marked."""
    content = message.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
    if not parts or parts[index].get("text") == "":
        return message
    parts[index] = {**parts[index], "cache_control": CACHE_CONTROL}
    return {**message, "content": parts}
