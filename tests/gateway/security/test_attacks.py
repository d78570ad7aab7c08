"""The table of attacks, each sent byte by byte: none gets through, and nothing is changed."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx
import pytest
import pytest_asyncio
import temporalio.client

from perdure.storage.credentials.tokens import create_token
from tests.gateway.security.attacks import credentials, cross_site, malformed, paths
from tests.gateway.security.attacks.attack import Attack, Target
from tests.gateway.security.raw import send_raw
from tests.gateway.security.scene import CANARY, make_annas, objects_of, open_stage
from tests.gateway.stage import GatewayStage

pytestmark = pytest.mark.long

ATTACKS = [
    attack for table in (cross_site, credentials, paths, malformed) for attack in table.attacks()
]


@dataclass
class Scene:
    stage: GatewayStage
    target: Target
    annas: Mapping[str, Any]
    """All that the store had of Anna's before."""

    async def annas_now(self) -> Mapping[str, Any]:
        return await objects_of(self.stage, "users/anna/")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def scene(
    temporal: temporalio.client.Client, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Scene]:
    """Anna's things, at a gateway that serves on a loopback address."""
    async with open_stage(temporal, tmp_path_factory.mktemp("attacked")) as stage:
        ids = await make_annas(stage)
        cookie = await log_in(stage, stage.anna)
        key = stage.ben.headers["authorization"].removeprefix("Bearer ")
        ticket = (await stage.ben.post("/v1/tickets")).json()["ticket"]
        assert await stage.gateway.identities.sessions.use_ticket(ticket) is not None
        past = timedelta(seconds=-1)
        expired = await create_token(
            stage.gateway.store, "ticket", "ben", frozenset({"read"}), past, None
        )
        target = Target(
            host=stage.url.removeprefix("http://"),
            id=ids.conversation_id,
            batch=ids.name,
            annas_key_id=ids.key_id,
            cookie=cookie,
            cookie_name=cookie.partition("=")[0],
            key=key,
            key_start=key[:-1],
            key_upper=key.upper(),
            key_id=key.split("_", 2)[1],
            secret=key.split("_", 2)[2],
            session=(await log_in(stage, stage.ben)).partition("=")[2],
            used_ticket=ticket,
            expired_ticket=expired,
        )
        await asyncio.sleep(1)  # what is saved at rest
        yield Scene(stage, target, await objects_of(stage, "users/anna/"))


async def log_in(stage: GatewayStage, client: httpx.AsyncClient) -> str:
    """Begin a session of a user's; return its cookie as a browser sends it."""
    key = client.headers["authorization"].removeprefix("Bearer ")
    response = await stage.client_with(None).post("/v1/login", json={"key": key})
    assert response.status_code == 200
    return response.headers["set-cookie"].partition(";")[0]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
async def test_an_attack_does_not_get_through(scene: Scene, attack: Attack) -> None:
    answer = await send_raw(scene.stage.url, *attack.build(scene.target))
    closed = attack.may_close and not answer.statuses
    assert closed or (set(answer.statuses) <= set(attack.statuses) and answer.statuses), answer
    assert CANARY not in answer.text
    assert "root:" not in answer.text
    assert "evil.example" not in answer.text
    assert "set-cookie" not in answer.text.lower()
    assert "access-control-allow-origin" not in answer.text.lower()
    for secret in (scene.target.secret, scene.target.session, scene.target.cookie):
        assert secret not in answer.text
    assert await scene.annas_now() == scene.annas


async def test_the_session_and_the_key_of_the_table_work_where_they_belong(scene: Scene) -> None:
    """Otherwise its rows would be refused for another reason than theirs."""
    name, _, secret = scene.target.cookie.partition("=")
    async with httpx.AsyncClient(base_url=scene.stage.url, cookies={name: secret}) as annas:
        assert (await annas.get("/v1/me")).json()["user_id"] == "anna"
        own = {"Sec-Fetch-Site": "same-origin"}
        assert (await annas.post("/v1/tickets", headers=own)).status_code == 201
    bens = scene.stage.client_with(scene.target.key)
    assert (await bens.get("/v1/me")).json()["user_id"] == "ben"
    assert await scene.annas_now() == scene.annas
