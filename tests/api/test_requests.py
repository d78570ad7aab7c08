"""The bodies of requests: a value of another JSON type is refused, not converted."""

import json
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from perdure.api.conversations import AskQuestion, ForkConversation, Respond, SendMessage
from perdure.api.keys import CreateKey
from perdure.events.images import MEDIA_TYPES
from tests.record_openapi import OPENAPI


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (CreateKey, {"name": "ci", "expires_in": True}),
        (CreateKey, {"name": "ci", "expires_in": "60"}),
        (AskQuestion, {"question": "Why?", "max_wait": True}),
        (ForkConversation, {"at": True}),
        (SendMessage, {"text": "Hi.", "wait": 1}),
        (Respond, {"accept": "yes", "through": 3}),
        (Respond, {"accept": True, "through": True}),
    ],
)
def test_a_value_of_another_type_is_refused(body: type[BaseModel], fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        body.model_validate(fields)


def test_a_blob_is_described_with_every_type_that_it_may_have() -> None:
    paths = json.loads(OPENAPI.read_text())["paths"]
    blob = paths["/v1/conversations/{conversation_id}/blobs/{sha256}"]["get"]
    described = blob["responses"]["200"]["content"]
    assert set(described) == {"application/octet-stream", *MEDIA_TYPES}
