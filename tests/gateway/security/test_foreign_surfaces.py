"""The routes for clients of others: another's things, spoilt requests, and the limit of a user."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import pytest_asyncio
import websockets
from starlette.applications import Starlette
from starlette.routing import Mount, Route

from perdure.client.ids import new_conversation_id
from perdure.gateway.app import create_app
from tests.gateway.security.foreign_routes import (
    AGENT,
    FOREIGN_ROUTES,
    OPENAI,
    OPENHANDS,
    ForeignIds,
    fill,
    send,
)
from tests.gateway.security.scene import CANARY, RATES, make_annas, objects_of
from tests.gateway.stage import GatewayStage, as_json, open_gateway
from tests.harness import ConversationHarness, text_answer

pytestmark = pytest.mark.long

ADDRESSED = [route for route, it in FOREIGN_ROUTES.items() if it.access == "addressed"]
OWN = [route for route, it in FOREIGN_ROUTES.items() if it.access == "own"]

NOT_JSON = (b"", b"\xff", b"{", b"[" * 100_000, b'{"model": "\\ud800"}', b"null", b"[]")

JUNK: tuple[Any, ...] = (
    *(None, True, -1, 10**30, 1.5e300, "", "\0", "\u2028../..\u202e", "x" * 100_000),
    *([], {}, [[[]]], {"kind": "none"}, [None], json.loads("[" * 60 + "]" * 60)),
)


@dataclass
class Scene:
    """A gateway with a conversation of Anna's, as clients of others address it."""

    stage: GatewayStage
    annas: ForeignIds
    absent: ForeignIds


@pytest_asyncio.fixture
async def scene(world: ConversationHarness) -> AsyncIterator[Scene]:
    sayer = world.spec(*[text_answer("Said.")] * 5)
    settings: dict[str, Any] = {"gateway_trusted": True, "agents": {AGENT: as_json(sayer)}}
    async with world.worker(), open_gateway(world, gateway_rates=RATES, **settings) as stage:
        name = (await make_annas(stage)).conversation_id
        page = await stage.anna.get(f"/v1/conversations/{name}/events")
        event = page.json()["items"][1]["id"]
        model = sayer.model.name
        absent = ForeignIds(new_conversation_id(), new_conversation_id(), model)
        yield Scene(stage, ForeignIds(name, event, model), absent)


def test_every_route_has_a_request(idle_stage: GatewayStage) -> None:
    app = create_app(idle_stage.gateway)
    served = {
        (method, re.sub(r"\{[^}]*\}", "{}", f"{mount.path}{route.path}"))
        for mount in app.routes
        if isinstance(mount, Mount) and isinstance(mount.app, Starlette)
        for route in mount.app.routes
        if isinstance(route, Route)
        for method in (route.methods or {"GET"}) - {"HEAD"}
    }
    ours = {
        (method, re.sub(r"\{[^}]*\}", "{}", re.sub(f"/({AGENT}|rest)$", "/{}", path)))
        for method, path in FOREIGN_ROUTES
    }
    assert served == ours


async def test_what_is_another_users_is_as_what_does_not_exist(scene: Scene) -> None:
    before = await objects_of(scene.stage, "users/anna/")
    for route in ADDRESSED:
        strange = await send(scene.stage.ben, route, scene.annas)
        absent = await send(scene.stage.ben, route, scene.absent)
        assert 400 <= strange[0] < 502, (route, strange)
        assert strange == absent, route
        assert CANARY not in strange[1], route
    for route in OWN:
        status, text = await send(scene.stage.ben, route, scene.annas)
        assert status < 500, (route, text)
        assert CANARY not in text, route
    after = await objects_of(scene.stage, "users/anna/")
    assert {key: body for key, body in after.items() if "/anna/index/" not in key} == {
        key: body for key, body in before.items() if "/anna/index/" not in key
    }


async def test_a_shell_and_files_are_served_to_nobody(scene: Scene) -> None:
    for route in [route for route, it in FOREIGN_ROUTES.items() if it.access == "refused"]:
        status, text = await send(scene.stage.anna, route, scene.annas)
        assert (status, "ask the agent" in text) == (501, True), route


async def test_a_stranger_follows_nothing(scene: Scene) -> None:
    base = scene.stage.url.replace("http", "ws", 1)
    key = scene.stage.ben.headers["authorization"].removeprefix("Bearer ")
    for name in (scene.annas.conversation_id, scene.absent.conversation_id):
        url = f"{base}{OPENHANDS}/sockets/events/{name}?resend_mode=all"
        async with websockets.connect(url) as socket:
            await socket.send(json.dumps({"type": "auth", "session_api_key": key}))
            with pytest.raises(websockets.ConnectionClosed):
                await socket.recv()
            assert socket.close_code == 4004


async def test_nobody_gets_in_without_a_key(scene: Scene) -> None:
    nobody = scene.stage.client_with(None)
    for route, it in FOREIGN_ROUTES.items():
        status, text = await send(nobody, route, scene.annas)
        assert status == (200 if it.access == "anybody" else 401), (route, text)
        assert CANARY not in text


def spoil(value: Any) -> Iterator[Any]:
    """Yield JSON with one of its parts missing, or with something else in its place."""
    yield from JUNK
    match value:
        case dict():
            yield {**value, "surprise": "!"}
            for key in value:
                yield {name: item for name, item in value.items() if name != key}
                yield from ({**value, key: part} for part in spoil(value[key]))
        case list():
            for index, item in enumerate(value):
                yield from ([*value[:index], part, *value[index + 1 :]] for part in spoil(item))


@pytest.mark.parametrize("share", [7, pytest.param(1, marks=pytest.mark.longest)])
async def test_a_spoilt_body_is_answered_with_a_sentence(scene: Scene, share: int) -> None:
    """One of so many bodies is tried, other ones of each route."""
    anna, names = scene.stage.anna, scene.absent.names
    tried = 0
    for (method, path), it in FOREIGN_ROUTES.items():
        if it.body is None:
            continue
        bodies = [json.dumps(body).encode() for body in spoil(fill(it.body, names))]
        for body in (*NOT_JSON, *bodies[tried % share :: share]):
            response = await anna.request(
                method,
                fill(path, names),
                content=body,
                headers={"Content-Type": "application/json"},
            )
            tried += 1
            assert is_expected(response), (path, body[:200])
            if response.status_code >= 400:
                check_shape(path, response)
    assert tried > 1000 / share


@pytest.mark.parametrize("share", [5, pytest.param(1, marks=pytest.mark.longest)])
async def test_a_spoilt_query_and_path_are_answered_with_a_sentence(
    scene: Scene, share: int
) -> None:
    """One of so many values of a query is tried, other ones of each."""
    anna, names = scene.stage.anna, scene.annas.names
    queries = ("limit", "after", "page_id", "sort_order", "kind", "timestamp__gte", "ids", "order")
    values = ("", "-1", "1e9", "\0", "x" * 5000, "../..", "9" * 40, "2026-13-45T99:99", "%ff")
    for nth, (method, path) in enumerate(it for it in FOREIGN_ROUTES if it[0] == "GET"):
        for place, query in enumerate(queries):
            for value in values[(nth + place) % share :: share]:
                response = await anna.request(method, fill(path, names), params={query: value})
                assert is_expected(response), (path, query, value)
        for value in ("%00", "..%2f..", "x" * 3000, "%F0%9F%A6%8A", "conv_", "resp__"):
            strange = re.sub(r"\{[^}]*\}", value, path)
            response = await anna.request(method, strange)
            assert is_expected(response), strange


def is_expected(response: httpx.Response) -> bool:
    """Tell whether a gateway without a fault may answer so: 501 is what it does not serve."""
    return response.status_code < 500 or response.status_code == 501


def check_shape(path: str, response: httpx.Response) -> None:
    """Check that an error has the shape and a sentence of its surface."""
    body = response.json()
    if path.startswith(OPENAI):
        assert set(body) == {"error"}
        assert set(body["error"]) == {"message", "type", "param", "code"}
        assert body["error"]["message"]
    else:
        assert body["detail"], path


async def test_a_user_has_no_more_at_work_than_the_limit(world: ConversationHarness) -> None:
    slow = world.spec({"content": "one two three four five six", "chunk_delay": 60})
    agents = {AGENT: as_json(slow)}
    limit = {"gateway_max_concurrent_conversations": 2}
    settings: dict[str, Any] = {"gateway_trusted": True, "agents": agents, **limit}
    async with world.worker(), open_gateway(world, gateway_rates=RATES, **settings) as stage:
        body = {"model": AGENT, "input": "Go.", "background": True}
        for _ in range(2):
            begun = await stage.anna.post(f"{OPENAI}/responses", json=body)
            assert begun.status_code == 200, begun.text
        llm = {"model": slow.model.name, "usage_id": "agent"}
        start = {"agent": {"kind": "Agent", "llm": llm, "tools": []}}
        first = {"initial_message": {"content": [{"type": "text", "text": "Go."}], "run": True}}
        made = await stage.anna.post(f"{OPENHANDS}/api/conversations", json={**start, **first})
        assert made.status_code == 201, made.text
        async with asyncio.timeout(60):
            while (at_work := await count_statuses(stage, "running")) != 2:
                await asyncio.sleep(0.1)
        assert at_work == 2
        await asyncio.sleep(2)
        assert await count_statuses(stage, "running") == 2


async def count_statuses(stage: GatewayStage, status: str) -> int:
    listed = (await stage.anna.get("/v1/conversations")).json()["items"]
    return sum(item["status"]["status"] == status for item in listed)
