"""Posts that arrive as signals, as turns of a schedule, and with a signature."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from perdure.client.webhooks.posts import read_data, read_text
from perdure.errors import Invalid
from perdure.events.waiting import SignalEvent
from perdure.gateway.limits.rates import Rates
from perdure.storage.credentials.addresses import StoredAddress, read_address, seal
from perdure.storage.errors import Altered
from tests.gateway.stage import GatewayStage, as_json
from tests.gateway.test_addresses import user_texts
from tests.harness import text_answer, tool_call_answer

SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
"""A sender's own secret, of the documentation of its library: 24 bytes."""


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


@pytest_asyncio.fixture
async def stranger(stage: GatewayStage) -> AsyncIterator[httpx.AsyncClient]:
    """A client without a key."""
    async with httpx.AsyncClient(base_url=stage.url, timeout=60) as client:
        yield client


STORED_BEFORE = """{"id":"9d41f0c27be85a36","user_id":"anna",
"conversation_id":"01a20dd5-34bc-7385-bafd-6ea6a1e795ea","created":"2026-11-26T20:37:38.000000",
"sha256":"88d4266fd4e6338d13b845fcf289579d209c897823b9217da3e161936f031589"}"""
"""An address of the version before signals, schedules and signatures; its secret is `abcd`."""


def test_an_address_of_before_is_one_of_messages_without_a_signature() -> None:
    address = StoredAddress.model_validate_json(STORED_BEFORE)
    assert (address.schedule, address.signal, address.signed) == (None, None, False)
    assert address.open_secret("abcd") is None
    assert address.matches("abcd")


@pytest.mark.parametrize(("sealed", "secret"), [("AAAA", "abcd"), ("ü", "abcd"), (None, "abcde")])
def test_a_secret_that_cannot_be_opened_is_damage_and_no_missing_signature(
    sealed: str | None, secret: str
) -> None:
    made = StoredAddress.model_validate_json(STORED_BEFORE)
    kept = made.model_copy(update={"sealed": seal(SECRET, "abcd", made.id)})
    assert kept.open_secret("abcd") == SECRET
    damaged = kept if sealed is None else kept.model_copy(update={"sealed": sealed})
    with pytest.raises(Altered):
        damaged.open_secret(secret)


@given(json_values)
def test_what_is_json_is_the_data_of_a_signal(data: Any) -> None:
    assert read_data(json.dumps(data).encode()) == data


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_and_data_or_refused(body: bytes) -> None:
    for read in (read_text, read_data):
        with contextlib.suppress(Invalid):
            read(body)


async def create(stage: GatewayStage, **fields: Any) -> dict[str, Any]:
    made = await stage.anna.post("/v1/addresses", json=fields)
    assert made.status_code == 201, made.text
    return dict(made.json())


def sign(secret: str, body: str, post_id: str = "b-1", age: float = 0) -> dict[str, str]:
    """Sign as a sender does, by the library of the standard."""
    at = datetime.now(UTC) - timedelta(seconds=age)
    signature = Webhook(secret).sign(post_id, at, body)
    return {
        "webhook-id": post_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": signature,
    }


async def signals(stage: GatewayStage, name: str) -> list[tuple[str, Any]]:
    events = await stage.gateway.client_for("anna").conversation(name).event_log.read()
    return [(it.name, it.data) for it in events if isinstance(it, SignalEvent)]


async def test_a_post_is_the_signal_that_a_wait_is_for(
    stage: GatewayStage, stranger: httpx.AsyncClient
) -> None:
    answers = (tool_call_answer(("wait", {"signal": "paid"})), text_answer("Done."))
    name = await stage.start(*answers, tools=("wait", "finish"))
    await stage.wait_until(name, "waiting")
    address = await create(stage, conversation_id=name, signal="paid")
    headers = {"webhook-id": "invoice-7"}
    taken = await stranger.post(address["path"], json={"amount": 12}, headers=headers)
    assert taken.status_code == 202, taken.text
    await stage.wait_until(name, "finished")
    again = await stranger.post(address["path"], json={"amount": 13}, headers=headers)
    assert again.json() == taken.json()
    assert taken.json()["message_id"] is None
    assert await signals(stage, name) == [("paid", {"amount": 12})]
    assert (await stranger.post(address["path"], content=b"so much")).status_code == 202
    assert (await stranger.post(address["path"])).status_code == 202
    assert (await signals(stage, name))[1:] == [("paid", "so much"), ("paid", None)]
    too_much = await stranger.post(address["path"], content=b"a" * 40_000)
    assert (too_much.status_code, "32,768" in too_much.text) == (422, True), too_much.text


async def create_schedule(stage: GatewayStage, name: str, *answers: dict[str, Any]) -> None:
    agent = as_json(stage.harness.spec(*answers))
    body = {"text": "Look at the ticket.", "cron": ["0 8 1 1 *"], "agent": agent}
    made = await stage.anna.post(f"/v1/schedules/{name}", json=body)
    assert made.status_code == 201, made.text


async def list_by_tag(stage: GatewayStage, tag: str, number: int) -> list[str]:
    """List the conversations of a tag, once there are so many of them."""
    async with asyncio.timeout(60):
        while True:
            found = (await stage.anna.get("/v1/conversations", params={"tag": tag})).json()["items"]
            if len(found) >= number:
                return [item["id"] for item in found]
            await asyncio.sleep(0.1)


async def test_a_post_begins_a_turn_of_a_schedule_and_the_same_again_none(
    stage: GatewayStage, stranger: httpx.AsyncClient
) -> None:
    schedule = f"tickets-{stage.harness.client.task_queue}"
    await create_schedule(stage, schedule, text_answer("It is answered."))
    address = await create(stage, schedule=schedule)
    assert (address["schedule"], address["conversation_id"]) == (schedule, None)
    bens = await stage.ben.post("/v1/addresses", json={"schedule": schedule})
    assert (bens.status_code, "There is no schedule" in bens.text) == (404, True)
    for post_id in ("t-1", "t-1", "t-2"):
        body, headers = {"text": f"Ticket {post_id}."}, {"webhook-id": post_id}
        taken = await stranger.post(address["path"], json=body, headers=headers)
        assert taken.status_code == 202, taken.text
    found = await list_by_tag(stage, f"schedule:{schedule}", 2)
    texts = sorted([await user_texts(stage, it) for it in found])
    assert texts == [
        ["Look at the ticket.\n\nTicket t-1."],
        ["Look at the ticket.\n\nTicket t-2."],
    ]
    for conversation_id in found:
        await stage.wait_until(conversation_id, "finished")
    await stage.anna.post(f"/v1/schedules/{schedule}/pause", json={})
    refused = await stranger.post(address["path"], json={"text": "Ticket t-3."})
    assert (refused.status_code, "is paused" in refused.text) == (409, True)
    assert (await stage.anna.delete(f"/v1/schedules/{schedule}")).status_code == 204
    gone = await stranger.post(address["path"], json={"text": "Ticket t-3."})
    assert gone.status_code == 404


async def test_a_post_to_the_schedule_of_a_conversation_is_a_message_of_it(
    stage: GatewayStage, stranger: httpx.AsyncClient
) -> None:
    name = await stage.start(text_answer("Hello."), text_answer("I see."))
    await stage.wait_until(name, "finished")
    schedule = f"pulse-{stage.harness.client.task_queue}"
    body = {"text": "Anything new?", "cron": ["0 8 1 1 *"], "conversation_id": name}
    assert (await stage.anna.post(f"/v1/schedules/{schedule}", json=body)).status_code == 201
    address = await create(stage, schedule=schedule)
    assert (await stranger.post(address["path"], content=b"Yes: rain.")).status_code == 202
    async with asyncio.timeout(60):
        while len(texts := await user_texts(stage, name)) < 2:
            await asyncio.sleep(0.1)
    assert texts[1:] == ["Anything new?\n\nYes: rain."]
    assert (await stage.anna.delete(f"/v1/schedules/{schedule}")).status_code == 204


BODY = '{"text": "It is paid."}'


def bad_headers(secret: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the headers of posts with a fault of each kind, and the reason that is told."""
    signed = sign(secret, BODY)
    yield "missing required headers", {}
    yield "missing required headers", {"webhook-id": "b-1"}
    yield "message timestamp too old", sign(secret, BODY, age=400)
    yield "message timestamp too new", sign(secret, BODY, age=-400)
    yield "no matching signature found", sign(SECRET, BODY)
    yield "no matching signature found", sign(secret, BODY + " ")
    yield "no matching signature found", {**signed, "webhook-id": "b-2"}
    yield "no matching signature found", {**signed, "webhook-signature": "v2,AAAA"}
    yield "invalid signature headers", {**signed, "webhook-timestamp": "now"}
    yield "invalid signature headers", {**signed, "webhook-signature": "none"}


async def test_a_signed_address_takes_what_its_secret_has_signed_alone(
    stage: GatewayStage, stranger: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    stage.gateway.rates = Rates({"failure": 1_000})  # each refusal below is one of a guess
    name = await stage.start(text_answer("Hello."), text_answer("I see."))
    await stage.wait_until(name, "finished")
    made = await create(stage, conversation_id=name, signed=True)
    for reason, headers in bad_headers(made["secret"]):
        refused = await stranger.post(made["path"], content=BODY, headers=headers)
        sentence = f"The post is not signed as it has to be: {reason}."
        assert (refused.status_code, refused.json()["detail"]) == (401, sentence)
    assert await user_texts(stage, name) == ["Hello?"]
    signed = sign(made["secret"], BODY)
    for _ in range(2):
        taken = await stranger.post(made["path"], content=BODY, headers=signed)
        assert taken.status_code == 202
    async with asyncio.timeout(60):
        while len(await user_texts(stage, name)) < 2:
            await asyncio.sleep(0.05)
    await stage.wait_until(name, "finished")
    assert await user_texts(stage, name) == ["Hello?", "It is paid."]
    await assert_nothing_has_its_secrets(stage, made, caplog)


async def assert_nothing_has_its_secrets(
    stage: GatewayStage, made: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Look for the secrets of an address in the store, in the list and in the lines of logs."""
    stored = await read_address(stage.gateway.store, made["id"])
    assert stored is not None
    shown = (await stage.anna.get("/v1/addresses")).text
    lines = [it.getMessage() for it in caplog.records if it.name.startswith("perdure")]
    assert any(made["id"] in line for line in lines)
    for text in (stored.model_dump_json(), shown, *lines):
        assert made["secret"] not in text
        assert made["path"].rpartition("/")[2] not in text


async def test_a_sender_may_bring_its_own_secret(
    stage: GatewayStage, stranger: httpx.AsyncClient
) -> None:
    name = await stage.start(text_answer("Hello."), text_answer("I see."))
    await stage.wait_until(name, "finished")
    address = await create(stage, conversation_id=name, signal="paid", secret=SECRET)
    assert address["signed"]
    signed = sign(SECRET, "12", "a")
    assert (await stranger.post(address["path"], content="12", headers=signed)).status_code == 202
    assert await signals(stage, name) == [("paid", 12)]
    for bad in ("secret", "whsec_", "whsec_AAAA", SECRET.removeprefix("whsec_"), "whsec_ü"):
        body = {"conversation_id": name, "secret": bad}
        refused = await stage.anna.post("/v1/addresses", json=body)
        assert (refused.status_code, "24 to 64 bytes" in refused.text) == (422, True)


async def test_whoever_guesses_signatures_has_to_wait(
    stage: GatewayStage, stranger: httpx.AsyncClient
) -> None:
    name = await stage.start(text_answer("Hello."))
    await stage.wait_until(name, "finished")
    address = await create(stage, conversation_id=name, signed=True)
    stage.gateway.rates = Rates({"failure": 6})
    answers = [await stranger.post(address["path"], content=b"Hi.") for _ in range(20)]
    assert {it.status_code for it in answers} == {401, 429}
    assert await user_texts(stage, name) == ["Hello?"]
