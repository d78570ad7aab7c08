"""The secrets that users hand in at a gateway, and the agents that have them."""

import asyncio
import contextlib
import json
import logging
import zlib
from collections.abc import AsyncIterator
from copy import copy
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
import temporalio.client
from pydantic import SecretStr

from perdure.activities.support.resources import Resources
from perdure.client.client import Client
from perdure.client.http.client import HttpClient
from perdure.errors import Invalid, NotFound
from perdure.models.router import ModelRouter
from perdure.storage.credentials.api_keys import create_api_key
from perdure.storage.files import FileStore
from tests.gateway.stage import GatewayStage, open_gateway
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.secrets.keys import key_ring, key_setting

SCRIPT = "answers.json"

VALUE = "ghp_canary-of-anna-0123456789"

SHOW = tool_call_answer(
    ("terminal", {"command": "echo $TICKETS | rev; echo is $TICKETS; echo $TICKETS > kept.txt"})
)


@pytest.fixture
def keyed(world: ConversationHarness) -> ConversationHarness:
    """The servers, whose workers and gateways have keys for secrets."""
    client = copy(world.client)
    client.secret_keys = SecretStr(key_setting("one"))
    resources = replace(world.resources, secret_keys=key_ring("one"))
    return replace(world, client=client, resources=resources)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def alone(
    temporal: temporalio.client.Client, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[GatewayStage]:
    """A gateway with keys and without a worker, for tests that start no conversation."""
    folder = tmp_path_factory.mktemp("alone")
    client = Client(
        temporal, FileStore(folder / "store"), secret_keys=SecretStr(key_setting("one"))
    )
    resources = Resources(client.store, ModelRouter(), folder)
    async with open_gateway(ConversationHarness(client, resources, folder)) as opened:
        yield opened


@pytest_asyncio.fixture
async def strict(keyed: ConversationHarness) -> AsyncIterator[GatewayStage]:
    """A gateway that trusts none of its users, and its worker."""
    model = f"scripted:{keyed.folder / SCRIPT}"
    async with keyed.worker(), open_gateway(keyed, gateway_trusted=False, model=model) as opened:
        yield opened


def brought(stage: GatewayStage, *answers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return an agent that a request brings, with the only model that may be named."""
    (stage.harness.folder / SCRIPT).write_text(json.dumps({"answers": answers}))
    return {"model": stage.gateway.settings.model, "tools": ["terminal"], **fields}


def readable(body: bytes) -> bytes:
    """Return the stored bytes, decompressed where they are compressed."""
    with contextlib.suppress(zlib.error):
        return body + zlib.decompress(body)
    return body


async def await_turn(stage: GatewayStage, name: str, number: int = 1) -> dict[str, Any]:
    """Wait for the end of Anna's turn of this number, and return her conversation."""
    while True:
        shown = await stage.wait_until(name, "finished", "idle", "error")
        if shown["status"]["turn"] == number and not shown["status"]["waiting"]:
            return shown
        await asyncio.sleep(0.1)


async def hand_in(stage: GatewayStage, name: str = "TICKETS", value: str = VALUE) -> None:
    body = {"value": value, "description": "reads the tickets"}
    response = await stage.anna.put(f"/v1/secrets/{name}", json=body)
    assert response.status_code == 204, response.text


async def test_a_secret_goes_in_and_nothing_but_its_name_comes_out(alone: GatewayStage) -> None:
    await hand_in(alone)
    listed = (await alone.anna.get("/v1/secrets")).json()["items"]
    assert [(it["name"], it["description"]) for it in listed] == [("TICKETS", "reads the tickets")]
    assert VALUE not in json.dumps(listed)
    assert (await alone.ben.get("/v1/secrets")).json() == {"items": []}
    assert (await alone.ben.delete("/v1/secrets/TICKETS")).status_code == 404
    assert (await alone.anna.get("/v1/secrets/TICKETS")).status_code == 405
    assert (await alone.anna.delete("/v1/secrets/TICKETS")).status_code == 204
    assert (await alone.anna.get("/v1/secrets")).json() == {"items": []}


async def test_a_key_that_may_only_read_lists_secrets_and_sets_none(alone: GatewayStage) -> None:
    await hand_in(alone)
    reader = await alone.client("anna", ["read"])
    assert len((await reader.get("/v1/secrets")).json()["items"]) == 1
    refused = await reader.put("/v1/secrets/OTHER", json={"value": VALUE})
    assert (refused.status_code, refused.json()["code"]) == (403, "scope")


@pytest.mark.parametrize(
    ("name", "body", "reason"),
    [
        ("1TOKEN", {"value": VALUE}, "path.name"),
        ("TOKEN", {"value": "short"}, "not a text of 8 to 65,536 bytes"),
        ("TOKEN", {"value": 17}, "body.value"),
        ("TOKEN", {}, "body.value"),
        ("TOKEN", {"value": VALUE, "description": VALUE}, "everybody may read it"),
        ("TOKEN", {"value": VALUE, "description": "x" * 501}, "body.description"),
        ("TOKEN", {"value": VALUE, "kept": True}, "body.kept"),
    ],
)
async def test_what_is_no_secret_is_refused_and_not_repeated(
    alone: GatewayStage, name: str, body: dict[str, Any], reason: str
) -> None:
    refused = await alone.anna.put(f"/v1/secrets/{name}", json=body)
    assert (refused.status_code, reason in refused.json()["detail"]) == (422, True), refused.text
    assert VALUE not in refused.text


async def test_a_gateway_without_keys_refuses_secrets(idle_stage: GatewayStage) -> None:
    refused = await idle_stage.anna.put("/v1/secrets/TOKEN", json={"value": VALUE})
    assert (refused.status_code, "PERDURE_SECRET_KEYS is not set" in refused.text) == (422, True)


async def test_a_users_agent_has_the_users_secret_and_no_trace_of_it_stays(
    strict: GatewayStage, keyed: ConversationHarness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "perdure")
    await hand_in(strict)
    agent = brought(strict, SHOW, text_answer(f"It is {VALUE}."), secrets=["TICKETS"])
    started = await strict.anna.post(
        "/v1/conversations", json={"text": f"Is it {VALUE}?", "agent": agent}
    )
    assert started.status_code == 201, started.text
    shown = await await_turn(strict, started.json()["id"])
    events = (await strict.anna.get(f"/v1/conversations/{shown['id']}/events")).text
    assert f"{VALUE[::-1]}\\nis <secret:TICKETS>" in events, "the command had it"
    assert "* `TICKETS`: reads the tickets" in events, "the agent knows what it is for"
    assert "Is it <secret:TICKETS>?" in events
    store = keyed.client.store
    keys = await store.list("users/anna/")
    bodies = await asyncio.gather(*map(store.read, keys))
    assert any("/workspace/" in key for key in keys), "the file is left out of a snapshot"
    assert VALUE.encode() not in b"".join(readable(body) for body in bodies if body)
    assert VALUE not in caplog.text + events + json.dumps(shown)


async def test_nobody_is_lent_the_secret_of_another_user(strict: GatewayStage) -> None:
    await hand_in(strict)
    agent = brought(strict, SHOW, text_answer("no"), secrets=["TICKETS"])
    refused = await strict.ben.post("/v1/conversations", json={"text": "Hi", "agent": agent})
    assert refused.status_code == 422
    assert "The secret 'TICKETS' may not be used here" in refused.json()["detail"]
    token = {**agent, "secrets": [], "repository": "https://github.com/a/b"}
    refused = await strict.ben.post(
        "/v1/conversations", json={"agent": {**token, "repository_token": "TICKETS"}}
    )
    assert "The secret 'TICKETS' may not be used here" in refused.json()["detail"]


async def test_who_may_write_to_a_conversation_lends_it_none_of_its_owners_secrets(
    strict: GatewayStage,
) -> None:
    await hand_in(strict)
    agent = brought(strict, text_answer("Hello."))
    started = await strict.anna.post("/v1/conversations", json={"text": "Hi", "agent": agent})
    path = f"/v1/conversations/{started.json()['id']}"
    await await_turn(strict, started.json()["id"])
    await strict.anna.put(f"{path}/grants/ben", json={"access": "write"})
    for name, user in (("ben", strict.ben), ("anna", strict.anna)):
        answer = await user.post(
            f"{path}/configure?owner=anna", json={"changes": {"secrets": ["TICKETS"]}}
        )
        assert answer.status_code == (422 if name == "ben" else 200), answer.text


@pytest.mark.long
async def test_a_start_says_more_over_the_agent_that_it_names(strict: GatewayStage) -> None:
    await hand_in(strict)
    brought(strict, SHOW, text_answer("Done."))
    body = {
        "text": "Hi",
        "instructions": "Be kind.",
        "secrets": {"TICKETS": "writes tickets"},
        "git_user_name": "Anna",
        "metadata": {"run": "7"},
        "app_name": "shop",
    }
    for user, status in ((strict.ben, 422), (strict.anna, 201)):
        answer = await user.post("/v1/conversations", json=body)
        assert answer.status_code == status, answer.text
    await await_turn(strict, answer.json()["id"])
    events = (await strict.anna.get(f"/v1/conversations/{answer.json()['id']}/events")).text
    assert "* `TICKETS`: writes tickets" in events
    assert VALUE[::-1] in events, "the command had it"
    handle = strict.gateway.client_for("anna").conversation(answer.json()["id"]).handle
    history = await handle.fetch_history()
    past = b"".join(event.SerializeToString() for event in history.events)
    assert b'"TICKETS"' in past, "the history has what the agent may use"
    assert VALUE.encode() not in past
    refused = await strict.anna.post("/v1/conversations", json={"branch": "main"})
    assert (refused.status_code, "of no repository" in refused.text) == (422, True)


@pytest.mark.long
async def test_a_secret_that_was_removed_is_lent_no_more(strict: GatewayStage) -> None:
    await hand_in(strict)
    answers = (text_answer("ready"), SHOW, text_answer("done"))
    agent = brought(strict, *answers, secrets=["TICKETS"])
    started = await strict.anna.post("/v1/conversations", json={"text": "Hi", "agent": agent})
    name = started.json()["id"]
    await await_turn(strict, name)
    assert (await strict.anna.delete("/v1/secrets/TICKETS")).status_code == 204
    await strict.anna.post(f"/v1/conversations/{name}/messages", json={"text": "Now."})
    await await_turn(strict, name, 2)
    events = (await strict.anna.get(f"/v1/conversations/{name}/events")).text
    assert "The secret TICKETS of the user anna was removed by its user" in events
    assert VALUE[::-1] not in events


@pytest.mark.parametrize("through", ["store", "gateway"])
async def test_both_clients_hand_secrets_in(alone: GatewayStage, through: str) -> None:
    client: Client | HttpClient = alone.gateway.client_for("anna")
    if through == "gateway":
        key = (await create_api_key(alone.gateway.store, "anna", "client")).secret
        client = await HttpClient(alone.url, key).__aenter__()
    await client.put_secret("TICKETS", VALUE, "reads the tickets")
    [secret] = await client.list_secrets()
    assert (secret.name, secret.description) == ("TICKETS", "reads the tickets")
    await client.remove_secret("TICKETS")
    with pytest.raises(NotFound, match="no secret 'TICKETS'"):
        await client.remove_secret("TICKETS")
    with pytest.raises(Invalid, match="not a text of 8"):
        await client.put_secret("TICKETS", "short")
    with pytest.raises(Invalid, match="no name of a secret"):
        await client.put_secret("../keys", VALUE)
    if through == "gateway":
        await client.close()
