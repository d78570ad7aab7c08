"""Every route, asked by a user for what is another's: it is as if it did not exist."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import pytest_asyncio
from starlette.routing import WebSocketRoute
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from perdure.gateway.app import create_app
from tests.gateway.security.routes import (
    BATCHES,
    CONVERSATION,
    DISCUSSIONS,
    REQUESTS,
    SOCKETS,
    STREAMS,
    Ids,
    send,
)
from tests.gateway.security.scene import ABSENT, CANARY, RATES, make_annas, objects_of
from tests.gateway.stage import GatewayStage, open_gateway
from tests.harness import ConversationHarness

ADDRESSED = [route for route, it in REQUESTS.items() if it.access != "own"]
OWN = [route for route, it in REQUESTS.items() if it.access == "own" and route not in STREAMS]
SHAREABLE = (CONVERSATION, BATCHES, DISCUSSIONS)


@dataclass
class Strangers:
    """Anna's things, and a gateway with clients of Anna and Ben."""

    stage: GatewayStage
    ids: Ids

    async def annas(self) -> Mapping[str, Any]:
        """Return what the store has of Anna, without the index of her lists, which is a cache."""
        places = ("users/anna/", f"gateway/keys/{self.ids.key_id}")
        stored = await objects_of(self.stage, *places)
        return {key: body for key, body in stored.items() if "/anna/index/" not in key}


@pytest_asyncio.fixture
async def scene(world: ConversationHarness) -> AsyncIterator[Strangers]:
    async with world.worker(), open_gateway(world, gateway_rates=RATES) as stage:
        yield Strangers(stage, await make_annas(stage))


@pytest.mark.long
def test_every_route_has_a_request(idle_stage: GatewayStage) -> None:
    app = create_app(idle_stage.gateway)
    described = {
        (method.upper(), path)
        for path, operations in app.openapi()["paths"].items()
        for method in operations
    }
    assert described == set(REQUESTS)
    sockets = {
        route.path
        for inner in app.routes
        for route in getattr(getattr(inner, "original_router", None), "routes", (inner,))
        if isinstance(route, WebSocketRoute)
    }
    assert sockets == SOCKETS


@pytest.mark.long
async def test_what_is_another_users_is_as_what_does_not_exist(scene: Strangers) -> None:
    before, ben = await scene.annas(), scene.stage.ben
    assert before
    for route in ADDRESSED:
        owners = (None, "anna") if route[1].startswith(SHAREABLE) else (None,)
        for owner in owners:
            strange = await send(ben, route, scene.ids, owner)
            absent = await send(ben, route, ABSENT, owner)
            assert strange.status == 404, (route, owner, strange)
            assert strange == absent, (route, owner)
            assert CANARY not in strange.text
    assert await scene.annas() == before


@pytest.mark.long
async def test_a_user_is_shown_his_own_alone(scene: Strangers) -> None:
    before = await scene.annas()
    mine = [it["id"] for it in (await scene.stage.ben.get("/v1/keys")).json()["items"]]
    for route in OWN:
        answer = await send(scene.stage.ben, route, scene.ids)
        assert answer.status < 500, (route, answer)
        assert CANARY not in answer.text, route
        assert "anna" not in answer.text, route
    listed = (await scene.stage.ben.get("/v1/keys")).json()["items"]
    assert {it["user_id"] for it in listed} == {"ben"}
    assert {*mine} < {it["id"] for it in listed}
    assert await scene.annas() == before


@pytest.mark.long
async def test_a_conversation_of_the_same_id_is_another_one(scene: Strangers) -> None:
    before, (conversation_id, name, *_) = await scene.annas(), scene.ids
    agent = REQUESTS["POST", "/v1/conversations"].body
    body = {**agent, "conversation_id": conversation_id}
    started = await scene.stage.ben.post("/v1/conversations", json=body)
    assert started.status_code == 201
    assert started.json()["owner"] == "ben"
    batch = REQUESTS["POST", "/v1/batches"].body
    mine = {**batch, "batch": {**batch["batch"], "name": name}}
    assert (await scene.stage.ben.post("/v1/batches", json=mine)).status_code == 201
    for route in ADDRESSED:
        answer = await send(scene.stage.ben, route, scene.ids)
        assert CANARY not in answer.text, route
    assert await scene.annas() == before


@pytest.mark.long
async def test_a_thread_of_ag_ui_is_its_users_own(scene: Strangers) -> None:
    before, ben = await scene.annas(), scene.stage.ben
    body = {"threadId": scene.ids.conversation_id, "runId": "1", "messages": []}
    annas_agent = await ben.post(f"/ag-ui/{scene.ids.name}", json=body)
    no_agent = await ben.post("/ag-ui/nobody_at_all", json=body)
    assert (annas_agent.status_code, no_agent.status_code) == (404, 404)
    own = {"description": "of Ben's", "model": "openai/any"}
    assert (await ben.put("/v1/agents/bens", json=own)).status_code == 200
    answers: tuple[dict[str, Any], ...] = (
        {},
        {"resume": [{"interruptId": "call", "status": "cancelled"}]},
    )
    for more in answers:
        told = await ben.post("/ag-ui/bens", json={**body, **more})
        absent = await ben.post("/ag-ui/bens", json={**body, **more, "threadId": ABSENT[0]})
        assert told.status_code == absent.status_code
        ids = (scene.ids.conversation_id, ABSENT[0])
        assert told.text.replace(*ids) == absent.text
        assert CANARY not in told.text
    assert await scene.annas() == before


@pytest.mark.long
async def test_a_stranger_follows_nothing(scene: Strangers) -> None:
    stage, path = scene.stage, f"/v1/conversations/{scene.ids.conversation_id}"
    base = stage.url.replace("http", "ws", 1)
    headers = {"Authorization": stage.ben.headers["authorization"]}
    for owner in ("", "?owner=anna"):
        frames, code = await receive_all(f"{base}{path}/socket{owner}", headers)
        assert code == 4004
        assert [frame["kind"] for frame in frames] == ["error"]
        assert CANARY not in str(frames)
    told = asyncio.create_task(read_feed(stage.ben, 3.0))
    await asyncio.sleep(0.5)
    assert (await stage.anna.patch(path, json={"title": f"New {CANARY}"})).status_code == 200
    assert "status" not in await told
    assert CANARY not in await told


async def receive_all(url: str, headers: Mapping[str, str]) -> tuple[list[Any], int | None]:
    """Return the frames that come on a socket, and the code by which it is closed."""
    async with connect(url, additional_headers=headers) as socket:
        frames = []
        with contextlib.suppress(ConnectionClosed):
            while True:
                frames.append(json.loads(await socket.recv()))
        return frames, socket.close_code


async def read_feed(client: httpx.AsyncClient, seconds: float) -> str:
    """Return what a feed sends within a time."""
    text = ""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds), client.stream("GET", "/v1/feed") as response:
            assert response.status_code == 200
            async for part in response.aiter_text():
                text += part
    return text


@pytest.mark.long
@pytest.mark.parametrize("access", ["read", "write"])
async def test_a_grant_covers_what_it_says(scene: Strangers, access: str) -> None:
    shared = (
        f"/v1/conversations/{scene.ids.conversation_id}",
        f"/v1/batches/{scene.ids.name}",
        f"/v1/discussions/{scene.ids.session_id}",
    )
    for path in shared:
        granted = await scene.stage.anna.put(f"{path}/grants/carl", json={"access": access})
        assert granted.status_code == 200
    carl = await scene.stage.client("carl")
    allowed = ("read", "write") if access == "write" else ("read",)
    closing = (("POST", f"{CONVERSATION}/close"),)
    for route in [it for it in ADDRESSED if it not in closing] + list(closing):
        needed = REQUESTS[route].access
        if needed == "key":
            continue
        assert (await send(carl, route, scene.ids)).status == 404, route
        answer = await send(carl, route, scene.ids, "anna")
        assert (answer.status == 403) == (needed not in allowed), (route, answer)
        assert answer.status not in (401, 404), (route, answer)
        assert answer.status < 500 or answer.status == 504, (route, answer)
        if answer.status == 403:
            assert CANARY not in answer.text
    ids = scene.ids
    assert await list_shared(carl) == [ids.conversation_id, ids.name, ids.session_id]
    assert await list_shared(scene.stage.ben) == []
    for path in shared:
        assert (await scene.stage.anna.delete(f"{path}/grants/carl")).status_code == 204
    for route in ADDRESSED:
        if route[1].startswith(SHAREABLE):
            answer = await send(carl, route, scene.ids, "anna")
            assert answer == await send(carl, route, ABSENT, "anna"), route
    assert await list_shared(carl) == []


async def list_shared(client: httpx.AsyncClient) -> list[str]:
    """Return the ids and names of what others share with a user."""
    conversations = (await client.get("/v1/shared")).json()["items"]
    batches = (await client.get("/v1/shared/batches")).json()["items"]
    discussions = (await client.get("/v1/shared/discussions")).json()["items"]
    items = [*conversations, *batches, *discussions]
    assert all((it["owner"], it["access"] != "owner") == ("anna", True) for it in items)
    return [it["name"] if "name" in it else it["id"] for it in items]


@pytest.mark.long
async def test_a_grant_for_a_batch_shows_the_conversations_of_its_samples(
    scene: Strangers,
) -> None:
    path = f"/v1/batches/{scene.ids.name}"
    results = (await scene.stage.anna.get(f"{path}/results")).json()["items"]
    sample = scene.ids._replace(conversation_id=results[0]["attempts"][0]["conversation_id"])
    ben, routes = scene.stage.ben, [it for it in ADDRESSED if it[1].startswith(CONVERSATION)]
    for route in routes:
        assert (await send(ben, route, sample, "anna")).status == 404
    await scene.stage.anna.put(f"{path}/grants/ben", json={"access": "write"})
    missing = [it for it in routes if "/files/" in it[1] or "/blobs/" in it[1]]
    for route in routes:
        answer = await send(ben, route, sample, "anna")
        assert (answer.status == 403) == (REQUESTS[route].access != "read"), (route, answer)
        assert answer.status != 404 or route in missing, (route, answer)
        others = await send(ben, route, scene.ids, "anna")
        assert others == await send(ben, route, ABSENT, "anna"), route
    await scene.stage.anna.delete(f"{path}/grants/ben")
    for route in routes:
        assert (await send(ben, route, sample, "anna")).status == 404


@pytest.mark.long
async def test_a_grant_for_a_discussion_shows_the_conversations_of_its_agents(
    scene: Strangers,
) -> None:
    path = f"/v1/discussions/{scene.ids.session_id}"
    conversations = (await scene.stage.anna.get(path)).json()["conversations"]
    ben, own = scene.stage.ben, f"/v1/conversations/{conversations['ada']}/events"
    other = f"/v1/conversations/{scene.ids.conversation_id}/events"
    assert (await ben.get(own, params={"owner": "anna"})).status_code == 404
    await scene.stage.anna.put(f"{path}/grants/ben", json={"access": "write"})
    assert CANARY in (await ben.get(own, params={"owner": "anna"})).text
    assert (await ben.get(other, params={"owner": "anna"})).status_code == 404
    steering = own.replace("events", "pause")
    assert (await ben.post(steering, params={"owner": "anna"})).status_code == 403
    body = {"text": "I am Anna.", "speaker": "anna"}
    spoken = await ben.post(f"{path}/say", params={"owner": "anna"}, json=body)
    assert (spoken.status_code, "speak as ben" in spoken.text) == (403, True)
    await scene.stage.anna.delete(f"{path}/grants/ben")
    assert (await ben.get(own, params={"owner": "anna"})).status_code == 404


@pytest.mark.long
async def test_a_follower_of_a_discussion_is_cut_off_with_its_grant(scene: Strangers) -> None:
    path = f"/v1/discussions/{scene.ids.session_id}"
    await scene.stage.anna.put(f"{path}/grants/ben", json={"access": "read"})
    query: dict[str, str | int] = {"owner": "anna", "after": 3}
    async with scene.stage.ben.stream("GET", f"{path}/stream", params=query) as response:
        text = ""
        async with asyncio.timeout(20):
            async for part in response.aiter_text():
                text += part
                if "event: status" in text and "/grants/" not in text:
                    await scene.stage.anna.delete(f"{path}/grants/ben")
                    text += "/grants/ revoked"
    assert "event: error" in text.partition("revoked")[2]
    assert '"code":"not_found"' in text


OPEN_ROUTES = {"/health": 200, "/ready": 200, "/v1/posts/{address_id}/{secret}": 404}
"""The routes that want no key, and their answers: a post has its secret in its address."""


@pytest.mark.long
async def test_without_a_key_nothing_is_shown(scene: Strangers) -> None:
    nobody = scene.stage.client_with(None)
    for route in REQUESTS:
        answer = await send(nobody, route, scene.ids)
        assert answer.status == OPEN_ROUTES.get(route[1], 401), (route, answer)
        assert CANARY not in answer.text
