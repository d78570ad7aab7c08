"""Addresses of conversations, to which others post without a key."""

import asyncio
import logging
from typing import Any

import httpx
import pytest

from perdure.client.http.client import HttpClient
from perdure.client.ids import derive_message_id
from perdure.client.webhooks.addresses import Addresses
from perdure.client.webhooks.http_webhooks import HttpAddresses
from perdure.client.webhooks.posts import read_data, read_text
from perdure.client.webhooks.protocol import define_address
from perdure.errors import Conflict, Forbidden, Invalid, NotFound
from perdure.events.messages import MessageEvent
from perdure.gateway.limits.rates import Rates
from tests.gateway.page.conftest import key_of
from tests.gateway.stage import GatewayStage
from tests.harness import text_answer

PATH = "/v1/addresses"
ABSENT = "01a20dd5-34bc-7385-bafd-6ea6a1e795ea"
WRONG = "x" * 43


async def create(client: httpx.AsyncClient, conversation_id: str) -> dict[str, Any]:
    made = await client.post(PATH, json={"conversation_id": conversation_id})
    assert made.status_code == 201, made.text
    return dict(made.json())


async def user_texts(stage: GatewayStage, conversation_id: str) -> list[str]:
    client = stage.gateway.client_for("anna")
    events = await client.conversation(conversation_id).event_log.read()
    return [
        event.llm_message.content[0].text  # type: ignore[union-attr]
        for event in events
        if isinstance(event, MessageEvent) and event.source == "user"
    ]


async def test_a_post_is_a_message_and_the_same_again_is_none(
    stage: GatewayStage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    name = await stage.start(*[text_answer(f"Answer {number}.") for number in range(4)])
    await stage.wait_until(name, "finished")
    address = await create(stage.anna, name)
    async with httpx.AsyncClient(base_url=stage.url) as stranger:
        for _ in range(2):
            taken = await stranger.post(
                address["path"], json={"text": "The build broke."}, headers={"webhook-id": "b-1"}
            )
            assert taken.status_code == 202, taken.text
        message_id = derive_message_id("anna", f"post {address['id']} b-1")
        assert taken.json() == {"message_id": message_id, "signal_id": None}
        await stage.wait_until(name, "finished")
        taken = await stranger.post(address["path"], content=b'{"build": 7}')
        assert taken.status_code == 202
        async with asyncio.timeout(60):
            while len(texts := await user_texts(stage, name)) < 3:
                await asyncio.sleep(0.05)
        assert texts[1:] == ["The build broke.", '{"build": 7}']
        assert (await stage.anna.delete(f"{PATH}/{address['id']}")).status_code == 204
        gone = await stranger.post(address["path"], json={"text": "Hello?"})
        assert gone.status_code == 404
    secret = address["path"].rpartition("/")[2]
    lines = [it.getMessage() for it in caplog.records if it.name.startswith("perdure")]
    assert any(address["id"] in line for line in lines)
    assert not any(secret in line for line in lines)
    assert secret not in str(await stage.gateway.store.list("gateway/addresses/"))


@pytest.mark.parametrize(
    ("content", "headers", "status", "sentence"),
    [
        (b"", {}, 422, "The post is empty"),
        (b"  ", {}, 422, "The post is empty"),
        (b"\xff\xfe", {}, 422, "no text in UTF-8"),
        (b"a" * 70_000, {}, 401, "no valid key"),
        (b"Hi.", {"webhook-id": "a" * 256}, 422, "webhook-id"),
    ],
)
async def test_a_post_that_is_no_message_is_refused(
    stage: GatewayStage, content: bytes, headers: dict[str, str], status: int, sentence: str
) -> None:
    name = await stage.start(text_answer("Hello."))
    await stage.wait_until(name, "finished")
    address = await create(stage.anna, name)
    async with httpx.AsyncClient(base_url=stage.url) as stranger:
        refused = await stranger.post(address["path"], content=content, headers=headers)
        assert (refused.status_code, sentence in refused.text) == (status, True), refused.text
    assert len(await user_texts(stage, name)) == 1


async def test_whoever_guesses_is_told_nothing_and_soon_must_wait(
    stage: GatewayStage,
) -> None:
    stage.gateway.rates = Rates({"failure": 6})
    async with httpx.AsyncClient(base_url=stage.url) as stranger:
        path = f"/v1/posts/{'0' * 16}/{WRONG}"
        told = await stranger.post(path, json={"text": "Hello?"})
        assert (told.status_code, told.json()["code"]) == (404, "not_found")
        answers = [await stranger.post(path, json={"text": "Hello?"}) for _ in range(20)]
        assert answers[-1].status_code == 429


def test_a_message_is_the_text_of_an_object_or_the_whole_body() -> None:
    assert read_text(b'{"text": "Hi.", "more": 1}') == "Hi."
    assert read_text(b'{"text": 5}') == '{"text": 5}'
    assert read_text(b'["Hi."]') == '["Hi."]'
    assert read_text("Grüße".encode()) == "Grüße"
    with pytest.raises(Invalid):
        read_text(b"\n")


def test_the_data_of_a_signal_are_json_or_a_text() -> None:
    assert read_data(b'{"amount": 12}') == {"amount": 12}
    assert read_data(b"[1, null]") == [1, None]
    assert read_data("Grüße".encode()) == "Grüße"
    assert read_data(b"") is None
    with pytest.raises(Invalid, match="no text in UTF-8"):
        read_data(b"\xff")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "an address is that of a conversation, or that of a schedule"),
        ({"conversation_id": ABSENT, "schedule": "a"}, "or that of a schedule"),
        ({"schedule": "a", "signal": "paid"}, "a schedule takes no signals"),
        ({"schedule": "a b"}, "schedule: "),
        ({"conversation_id": ABSENT, "signal": "so paid"}, "no name of a signal: it has letters"),
    ],
)
def test_what_is_no_address_is_refused_with_a_sentence(
    fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(Invalid) as refused:
        define_address(**fields)
    assert sentence in str(refused.value)


async def test_the_library_has_the_same_addresses(stage: GatewayStage) -> None:
    name = await stage.start(text_answer("Hello."))
    await stage.wait_until(name, "finished")
    async with HttpClient(stage.url, key_of(stage.anna)) as client:
        addresses = Addresses.from_client(client)  # type: ignore[arg-type]
        assert isinstance(addresses, HttpAddresses)
        made = await addresses.create(define_address(name))
        assert made.path not in repr(made)
        assert [it.id for it in await addresses.list_addresses()] == [made.id]
        with pytest.raises(NotFound, match="There is no conversation"):
            await addresses.create(define_address(ABSENT))
        bens = Addresses(stage.gateway.client_for("ben"))
        assert await bens.list_addresses() == []
        for address_id in (made.id, "0" * 16, "a/b"):
            with pytest.raises(NotFound, match="There is no address"):
                await bens.revoke(address_id)
        with pytest.raises(NotFound, match="There is no conversation"):
            await bens.create(define_address(name))
        await addresses.revoke(made.id)
        with pytest.raises(NotFound):
            await addresses.revoke(made.id)
        assert await addresses.list_addresses() == []


@pytest.mark.long
async def test_a_user_has_so_many_addresses_at_most(stage: GatewayStage) -> None:
    name = await stage.start(text_answer("Hello."))
    await stage.wait_until(name, "finished")
    addresses = Addresses(stage.gateway.client_for("anna"))
    for _ in range(100):
        await addresses.create(define_address(name))
    with pytest.raises(Conflict, match="100 addresses at most"):
        await addresses.create(define_address(name))


async def test_whoever_may_only_read_changes_no_address(idle_stage: GatewayStage) -> None:
    reader = await idle_stage.client("anna-reads", ["read"])
    async with HttpClient(idle_stage.url, key_of(reader)) as client:
        addresses = HttpAddresses(client)
        assert await addresses.list_addresses() == []
        with pytest.raises(Forbidden):
            await addresses.create(define_address(ABSENT))
