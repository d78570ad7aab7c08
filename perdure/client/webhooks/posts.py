"""Posts of others, as messages or signals of a conversation, or as turns of a schedule."""

import json
from typing import Any

from perdure.api.addresses import TakenPost
from perdure.client.client import Client
from perdure.client.ids import derive_message_id, new_message_id
from perdure.client.schedules.posts import begin_turn
from perdure.errors import Invalid
from perdure.storage.credentials.addresses import StoredAddress


async def deliver_post(
    client: Client, address: StoredAddress, body: bytes, webhook_id: str | None
) -> TakenPost:
    """Deliver a post to where an address leads; a `webhook_id` that came before says nothing.

    The client is that of the address's user. Raises Invalid for what is no text, NotFound,
    Conflict, TimedOut and Unreachable.
    """
    post_id = new_message_id()
    if webhook_id is not None:
        post_id = derive_message_id(address.user_id, f"post {address.id} {webhook_id}")
    if address.schedule is not None:
        message_id = await begin_turn(client, address.schedule, read_text(body), post_id)
        return TakenPost(message_id=message_id)
    assert address.conversation_id is not None, "an address has a conversation or a schedule"
    conversation = client.conversation(address.conversation_id)
    if address.signal is not None:
        await conversation.signal(address.signal, read_data(body), post_id)
        return TakenPost(signal_id=post_id)
    await conversation.send(read_text(body), post_id, reopen=True)
    return TakenPost(message_id=post_id)


def read_text(body: bytes) -> str:
    """Read the message of a post: `text` of a JSON object that has it, or else the whole body.

    Raises Invalid.
    """
    text = _decode(body)
    if not text.strip():
        raise Invalid("The post is empty.", 'Send a text, or JSON such as {"text": "…"}.')
    parsed = _parse(text)
    inner = parsed.get("text") if isinstance(parsed, dict) else None
    return inner if isinstance(inner, str) and inner.strip() else text


def read_data(body: bytes) -> Any:
    """Read the data of a signal: JSON, or else the text itself; None of an empty post.

    Raises Invalid.
    """
    text = _decode(body)
    return _parse(text) if text.strip() else None


def _decode(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise Invalid("The post is no text in UTF-8.", "Send JSON, or plain text.") from error


def _parse(text: str) -> Any:
    """Parse JSON; what is none stays a text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
