"""Bad input on every route: a sentence, the documented status, and nothing is lost or changed."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import pytest_asyncio
import temporalio.client

from perdure.api.problem import PROBLEM_MEDIA_TYPE
from tests.gateway.security.bad_requests import ROUTES, SCHEMAS, BadRequest, Route, bad_requests
from tests.gateway.security.routes import STREAMS, Ids
from tests.gateway.security.scene import make_annas, objects_of, open_stage
from tests.gateway.stage import GatewayStage

LISTS = ("/v1/conversations", "/v1/batches", "/v1/keys")

AT_ONCE = 4


@dataclass
class Scene:
    """Anna's things as they were before anybody sent anything bad."""

    stage: GatewayStage
    ids: Ids
    stored: Mapping[str, Any]
    shown: Mapping[str, Any]

    async def stored_now(self) -> Mapping[str, Any]:
        return await objects_of(self.stage, "users/anna/")

    async def shown_now(self) -> Mapping[str, Any]:
        """Return the answers of the lists, and the conversation with its log."""
        conversation = f"/v1/conversations/{self.ids.conversation_id}"
        paths = (*LISTS, conversation, f"{conversation}/events?limit=1000")
        answers = {path: (await self.stage.anna.get(path)).json() for path in paths}
        for key in answers["/v1/keys"]["items"]:
            key.pop("last_used", None)
        return answers


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def scene(
    temporal: temporalio.client.Client, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Scene]:
    async with open_stage(temporal, tmp_path_factory.mktemp("bad")) as stage:
        made = Scene(stage, await make_annas(stage), {}, {})
        await asyncio.sleep(1)  # what is saved at rest
        made.stored, made.shown = await made.stored_now(), await made.shown_now()
        assert made.stored
        yield made


def find_fault(route: Route, request: BadRequest, answer: httpx.Response) -> str | None:
    """Return what is wrong with an answer."""
    if request.may_succeed and answer.status_code in (200, 204):
        return None
    if answer.status_code not in request.statuses:
        return f"the status is none of {request.statuses}"
    if str(answer.status_code) not in route.operation["responses"] and answer.status_code != 405:
        return "the status is not described"
    if answer.headers["content-type"] != PROBLEM_MEDIA_TYPE:
        return "it is no problem"
    problem = answer.json()
    if problem["status"] != answer.status_code or not problem["code"] or "hint" not in problem:
        return "the problem is not whole"
    detail = problem["detail"]
    if not detail.endswith((".", "!", "?")) or " " not in detail or "\n" in detail:
        return "the detail is no sentence"
    return None


@pytest.mark.long
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
async def test_bad_input_is_refused_by_a_sentence_and_changes_nothing(
    scene: Scene, route: Route
) -> None:
    faults: list[str] = []
    room = asyncio.Semaphore(AT_ONCE)

    async def send(request: BadRequest) -> None:
        async with room:
            url = httpx.URL(scene.stage.url, raw_path=request.target.encode())
            answer = await scene.stage.anna.request(
                request.method, url, headers=dict(request.headers), content=request.body
            )
            if fault := find_fault(route, request, answer):
                faults.append(f"{request.name}: {fault}: {answer.status_code} {answer.text[:300]}")

    requests = [] if route.key in STREAMS else list(bad_requests(route, scene.ids))
    await asyncio.gather(*map(send, requests))
    assert not faults, f"{len(faults)} of {len(requests)}\n" + "\n".join(faults)
    assert await scene.stored_now() == scene.stored
    assert await scene.shown_now() == scene.shown


def test_every_part_of_a_request_is_spoilt(scene: Scene) -> None:
    """Otherwise a route could be passed over in silence."""
    for route in ROUTES:
        names = {request.name for request in bad_requests(route, scene.ids)}
        parts = " ".join(names)
        for kind in ("path", "query", "header"):
            assert all(name in parts for name, _, _ in route.parameters(kind)), route.key
        if route.body is not None:
            assert {"an unknown field", "no JSON"} <= names
            assert all(f"{name} = " in parts for name in list_fields(route)), route.key


def list_fields(route: Route) -> list[str]:
    """List the fields of a body; one that is a table of any keys has none."""
    assert route.body is not None
    if "$ref" not in route.body:
        return []
    return list(SCHEMAS[route.body["$ref"].rpartition("/")[2]]["properties"])
