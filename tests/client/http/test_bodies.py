"""What no gateway would take is refused in a sentence, before anything is sent."""

from collections.abc import Awaitable, Callable

import pytest

from perdure.client.http.client import HttpClient
from perdure.client.http.conversation import HttpConversation
from perdure.errors import Invalid

NOWHERE = "http://127.0.0.1:9"
CONVERSATION = "0195f3a0-0000-7000-8000-000000000000"

Call = Callable[[HttpClient, HttpConversation], Awaitable[object]]

REFUSED: dict[str, Call] = {
    "title": lambda _, conversation: conversation.note(title="x" * 201),
    "state.a": lambda _, conversation: conversation.note(state={"a": object()}),
    "text": lambda _, conversation: conversation.send("x" * 1_000_001),
    "message_id": lambda _, conversation: conversation.submit("Hi.", message_id='"'),
    "changes.a": lambda _, conversation: conversation.configure({"a": object()}),
    "calls": lambda _, conversation: conversation.respond(True, ["x"] * 65),
    "description": lambda client, _: client.put_secret("TOKEN", "12345678", "x" * 501),
}


@pytest.mark.parametrize("field", REFUSED)
async def test_a_body_that_no_gateway_takes_is_refused_in_a_sentence(field: str) -> None:
    client = HttpClient(NOWHERE, "key")
    conversation = HttpConversation(client.connection, "anna", CONVERSATION, None)
    try:
        with pytest.raises(Invalid, match=f"^The request is not right: {field}: "):
            await REFUSED[field](client, conversation)
    finally:
        await client.close()
