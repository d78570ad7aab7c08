"""A gateway whose Temporal or store does not answer, and one that is killed."""

import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from perdure.activities.support.resources import Resources
from perdure.client.client import Client
from perdure.client.ids import new_conversation_id
from perdure.models.router import ModelRouter
from perdure.storage.errors import StoreUnavailable
from perdure.storage.files import FileStore
from perdure.temporal.connect import connect
from tests.gateway.stage import GatewayStage, as_json, open_gateway
from tests.harness import ConversationHarness, text_answer


@pytest_asyncio.fixture
async def lonely(tmp_path: Path) -> AsyncIterator[GatewayStage]:
    """A gateway that started where no Temporal answers."""
    store = FileStore(tmp_path / "store")
    temporal = await connect("127.0.0.1:9", quiet=True, lazy=True)
    client = Client(temporal, store, task_queue=f"test-{uuid.uuid4()}")
    harness = ConversationHarness(client, Resources(store, ModelRouter(), tmp_path), tmp_path)
    async with open_gateway(harness) as stage:
        yield stage


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/conversations", {"text": "Hello?"}),
        ("GET", "/v1/conversations/{id}", None),
        ("GET", "/v1/conversations/{id}/events", None),
        ("POST", "/v1/conversations/{id}/messages", {"text": "Hello?"}),
        ("POST", "/v1/conversations/{id}/pause", None),
        ("GET", "/ready", None),
    ],
)
async def test_a_request_without_temporal_is_a_503_with_the_time_to_come_back(
    lonely: GatewayStage, method: str, path: str, body: Any
) -> None:
    if body and "messages" not in path:
        body["agent"] = as_json(lonely.harness.spec(text_answer("5")))
    answer = await lonely.anna.request(
        method, path.replace("{id}", new_conversation_id()), json=body
    )
    assert answer.status_code == 503, answer.text
    assert int(answer.headers["retry-after"]) >= 1
    assert answer.json()["code"] == "unreachable"


async def test_what_needs_only_the_store_is_answered_without_temporal(
    lonely: GatewayStage,
) -> None:
    for path in ("/health", "/v1/me", "/v1/keys", "/v1/agents", "/v1/conversations", "/v1/batches"):
        answer = await lonely.anna.get(path)
        assert answer.status_code == 200, answer.text


class BrokenStore(FileStore):
    """A store that stops answering."""

    is_broken = False

    async def read(self, key: str) -> bytes | None:
        if self.is_broken:
            raise StoreUnavailable("s3://canary-bucket at http://10.1.2.3 does not answer.")
        return await super().read(key)


@pytest.mark.long
async def test_a_store_that_does_not_answer_is_a_503_that_tells_nothing_of_it(
    world: ConversationHarness, tmp_path: Path
) -> None:
    store = BrokenStore(tmp_path / "broken")
    client = Client(world.client.temporal, store, task_queue=world.client.task_queue)
    async with open_gateway(replace(world, client=client)) as stage:
        assert (await stage.anna.get("/v1/me")).status_code == 200
        store.is_broken = True
        for path in (f"/v1/conversations/{new_conversation_id()}", "/ready", "/v1/keys"):
            answer = await stage.anna.get(path)
            assert answer.status_code == 503, answer.text
            assert "retry-after" in answer.headers
            assert "canary" not in answer.text
            assert "10.1.2.3" not in answer.text
        fresh = stage.client_with("pk_0123456789abcdef_" + "a" * 43)
        assert (await fresh.get("/v1/me")).status_code == 503
