"""Webhooks through the native API, by hand and by the library."""

import json
import logging
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from perdure.client.http.client import HttpClient
from perdure.client.webhooks.http_webhooks import HttpWebhooks
from perdure.client.webhooks.protocol import define_webhook
from perdure.client.webhooks.webhooks import Webhooks
from perdure.errors import Conflict, Forbidden, Invalid, NotFound
from tests.gateway.page.conftest import key_of
from tests.gateway.stage import GatewayStage
from tests.gateway.test_limits import audit_records
from tests.secrets.keys import key_setting

PATH = "/v1/webhooks"
URL = "https://8.8.8.8/hooks"
ABSENT = "01a20dd5-34bc-7385-bafd-6ea6a1e795ea"


@pytest.fixture(autouse=True)
def keys(idle_stage: GatewayStage) -> None:
    idle_stage.gateway.client.secret_keys = SecretStr(key_setting("first"))


async def create(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    made = await client.post(PATH, json={"url": URL, **fields})
    assert made.status_code == 201, made.text
    return dict(made.json())


async def test_a_webhook_is_created_shown_rotated_and_deleted(
    idle_stage: GatewayStage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "perdure.gateway.audit")
    anna = await idle_stage.client("anna-webhooks")
    made = await create(anna, events=["turn_end", "error"])
    assert made["secret"].startswith("whsec_")
    path = f"{PATH}/{made['id']}"
    shown = (await anna.get(path)).json()
    assert (shown["url"], shown["events"], shown["deliveries"]) == (URL, ["turn_end", "error"], [])
    assert "secret" not in shown
    [listed] = (await anna.get(PATH)).json()["items"]
    assert listed == {name: value for name, value in shown.items() if name != "deliveries"} | {
        "deliveries": None
    }
    rotated = (await anna.post(f"{path}/rotate")).json()
    assert rotated["secret"] != made["secret"]
    stored = list(await idle_stage.gateway.store.list("users/anna-webhooks/secrets/"))
    assert [key.split("/")[3:5] for key in stored] == [["@webhooks", made["id"]]]
    body = await idle_stage.gateway.store.read(stored[0])
    assert body is not None
    assert b"8.8.8.8" not in body
    assert (await anna.delete(path)).status_code == 204
    assert (await anna.get(path)).status_code == 404
    lines = [json.loads(record.message) for record in audit_records(caplog)]
    acts = [line["act"] for line in lines if line.get("webhook") == made["id"]]
    assert acts == ["webhook.create", "webhook.rotate", "webhook.delete"]
    assert rotated["secret"] not in caplog.text


@pytest.mark.parametrize(
    ("fields", "status", "sentence"),
    [
        ({"url": "http://127.0.0.1:1/x"}, 422, "private address"),
        ({"url": "http://localhost/x"}, 422, "private address"),
        ({"url": "http://[::ffff:10.0.0.1]/x"}, 422, "private address"),
        ({"url": "ftp://8.8.8.8/x"}, 422, "is no URL of http or https"),
        ({"url": "nowhere"}, 422, "is no URL of http or https"),
        ({"url": "https://anna:secret@8.8.8.8/"}, 422, "neither a user nor a fragment"),
        ({"events": ["turn_ends"]}, 422, "turn_end"),
        ({"events": []}, 422, "events"),
        ({"conversation_id": ABSENT}, 404, "There is no conversation"),
    ],
)
async def test_a_webhook_that_is_none_is_refused_with_a_sentence(
    idle_stage: GatewayStage, fields: dict[str, Any], status: int, sentence: str
) -> None:
    refused = await idle_stage.anna.post(PATH, json={"url": URL, **fields})
    assert refused.status_code == status, refused.text
    assert sentence in refused.text
    assert (await idle_stage.anna.get(PATH)).json()["items"] == []


async def test_the_library_has_the_same_webhooks(idle_stage: GatewayStage) -> None:
    anna = await idle_stage.client("anna-library")
    async with HttpClient(idle_stage.url, key_of(anna)) as client:
        webhooks = Webhooks.from_client(client)  # type: ignore[arg-type]
        assert isinstance(webhooks, HttpWebhooks)
        made = await webhooks.create(define_webhook(URL))
        assert made.secret not in repr(made)
        assert [it.id for it in await webhooks.list_webhooks()] == [made.id]
        assert (await webhooks.get(made.id)).events == made.events
        assert (await webhooks.rotate(made.id)).secret != made.secret
        assert len(await webhooks.test(made.id)) == 36
        with pytest.raises(Invalid, match="private address"):
            await webhooks.create(define_webhook("http://10.0.0.1/"))
        await webhooks.delete(made.id)
        for absent in (made.id, "a/b"):
            with pytest.raises(NotFound, match="There is no webhook"):
                await webhooks.get(absent)


@pytest.mark.long
async def test_a_user_has_so_many_webhooks_at_most(idle_stage: GatewayStage) -> None:
    anna = await idle_stage.client("anna-many")
    async with HttpClient(idle_stage.url, key_of(anna)) as client:
        webhooks = HttpWebhooks(client)
        for _ in range(50):
            await webhooks.create(define_webhook(URL))
        with pytest.raises(Conflict, match="50 webhooks at most"):
            await webhooks.create(define_webhook(URL))


async def test_whoever_may_only_read_changes_no_webhook(idle_stage: GatewayStage) -> None:
    reader = await idle_stage.client("anna-reads", ["read"])
    async with HttpClient(idle_stage.url, key_of(reader)) as client:
        webhooks = HttpWebhooks(client)
        assert await webhooks.list_webhooks() == []
        with pytest.raises(Forbidden):
            await webhooks.create(define_webhook(URL))


async def test_without_keys_for_secrets_no_webhook_is_kept(idle_stage: GatewayStage) -> None:
    idle_stage.gateway.client.secret_keys = None
    refused = await idle_stage.anna.post(PATH, json={"url": URL})
    assert refused.status_code == 422
    assert "PERDURE_SECRET_KEYS is not set" in refused.text
