"""The memories of a user through the native API."""

import json
import logging
from typing import Any

import httpx
import pytest

from perdure.api.memories import MemoryFilter
from perdure.client.http.client import HttpClient
from perdure.client.memory.http_memories import HttpMemories
from perdure.errors import Invalid, NotFound
from tests.gateway.stage import GatewayStage
from tests.gateway.test_limits import audit_records
from tests.harness import text_answer

PATH = "/v1/memories"


async def put(client: httpx.AsyncClient, text: str, **fields: Any) -> dict[str, Any]:
    response = await client.post(PATH, json={"text": text, **fields})
    assert response.status_code == 201, response.text
    return dict(response.json())


async def test_memories_are_put_read_listed_and_removed(
    idle_stage: GatewayStage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "perdure.gateway.audit")
    anna = await idle_stage.client("anna-lists")
    made = [await put(anna, f"Shoe {nth}", tags=[f"t{nth % 2}"], app="shop") for nth in range(5)]
    assert (await anna.get(f"{PATH}/{made[0]['id']}")).json() == made[0]
    pages, cursor = [], None
    while True:
        query = {"limit": 2, **({"cursor": cursor} if cursor else {})}
        page = (await anna.get(PATH, params=query)).json()
        pages += page["items"]
        if (cursor := page.get("next_cursor")) is None:
            break
    assert pages == made
    tagged = (await anna.get(PATH, params={"tag": "t1", "app": "shop"})).json()["items"]
    assert tagged == [made[1], made[3]]
    assert (await anna.get(PATH, params={"app": "home"})).json()["items"] == []
    assert (await anna.delete(f"{PATH}/{made[0]['id']}")).status_code == 204
    assert (await anna.delete(f"{PATH}/{made[0]['id']}")).status_code == 404
    assert (await anna.get(f"{PATH}/{made[0]['id']}")).status_code == 404
    lines = [json.loads(record.message) for record in audit_records(caplog)]
    removals = [line for line in lines if line["act"] == "memory.remove"]
    assert [(it["user"], it["memory"]) for it in removals] == [("anna-lists", made[0]["id"])]


async def test_what_is_another_user_s_is_as_what_does_not_exist(idle_stage: GatewayStage) -> None:
    anna, ben = await idle_stage.client("anna-owns"), await idle_stage.client("ben-asks")
    made = await put(anna, "A secret shoe.", key="shoe")
    absent = made["id"].replace(made["id"][0], "0" if made["id"][0] != "0" else "1", 1)
    for method in ("GET", "DELETE"):
        theirs = await ben.request(method, f"{PATH}/{made['id']}")
        nothing = await ben.request(method, f"{PATH}/{absent}")
        assert theirs.status_code == nothing.status_code == 404
        assert theirs.text.replace(made["id"], absent) == nothing.text
    assert (await ben.get(PATH)).json()["items"] == []
    own = await put(ben, "A shoe of his own.", key="shoe")
    assert own["id"] == made["id"], "the same key has the same id, in a folder of its own"
    assert (await ben.delete(f"{PATH}/{own['id']}")).status_code == 204
    assert (await anna.get(f"{PATH}/{made['id']}")).json() == made


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({}, "body.text"),
        ({"text": ""}, "at least 1 character"),
        ({"text": "a" * 65_537}, "65,536 bytes at most, and this one 65,537"),
        ({"text": "x", "user_id": "ben"}, "body.user_id"),
        ({"text": "x", "tags": "y"}, "body.tags"),
        ({"text": "x", "metadata": []}, "body.metadata"),
    ],
)
async def test_a_memory_that_is_not_right_is_refused(
    idle_stage: GatewayStage, body: dict[str, Any], fault: str
) -> None:
    response = await idle_stage.anna.post(PATH, json=body)
    assert response.status_code == 422
    assert fault in response.json()["detail"]


async def test_ten_megabytes_are_refused_before_they_are_read(idle_stage: GatewayStage) -> None:
    response = await idle_stage.anna.post(PATH, json={"text": "a" * 10 * 1024 * 1024})
    assert response.status_code == 413
    assert "8,388,608 bytes" in response.json()["detail"]


async def test_a_key_needs_the_scopes(idle_stage: GatewayStage) -> None:
    reader = await idle_stage.client("anna", ["read"])
    assert (await reader.get(PATH)).status_code == 200
    for path in (PATH, "/v1/reindex/memories"):
        assert (await reader.post(path, json={"text": "x"})).status_code == 403
    assert (await idle_stage.client_with(None).get(PATH)).status_code == 401


@pytest.mark.long
async def test_a_conversation_is_ingested_once(stage: GatewayStage) -> None:
    name = await stage.start(text_answer("It is 5."), text="What is 2 + 3?")
    await stage.wait_until(name, "finished")
    path = f"/v1/conversations/{name}/ingest"
    assert (await stage.anna.post(path)).json() == {"memories": 2, "new": 2}
    assert (await stage.anna.post(path)).json() == {"memories": 2, "new": 0}
    items = (await stage.anna.get(PATH)).json()["items"]
    [summary, turn] = sorted(items, key=lambda it: str(it["metadata"]["part"]))
    assert turn["text"] == "User: What is 2 + 3?\n\nAgent: It is 5."
    await stage.anna.delete(f"{PATH}/{turn['id']}")
    assert (await stage.anna.post(path)).json() == {"memories": 1, "new": 0}
    assert (await stage.anna.get(PATH)).json()["items"] == [summary]
    assert (await stage.ben.post(path)).status_code == 404
    shared = {"owner": "anna"}
    await stage.anna.put(f"/v1/conversations/{name}/grants/ben", json={"access": "write"})
    assert (await stage.ben.post(path, params=shared)).status_code == 403
    assert (await stage.ben.get(PATH)).json()["items"] == []


@pytest.mark.long
async def test_a_program_with_a_key_has_the_same_memories(idle_stage: GatewayStage) -> None:
    made = await idle_stage.client("carla")
    key = made.headers["authorization"].removeprefix("Bearer ")
    async with HttpClient(idle_stage.url, key) as client:
        memories = HttpMemories.from_client(client)
        shoes = [await memories.put(f"Shoe{nth}", app="shop") for nth in range(120)]
        hat = await memories.put("A hat", "hat", tags=["t"], metadata={"n": 1})
        assert await memories.get(hat.id) == hat
        assert [it.memory for it in await memories.search("hat")] == [hat]
        assert await memories.search("hat", only=MemoryFilter(app="shop")) == []
        assert len(await memories.list_memories(110, only=MemoryFilter(app="shop"))) == 110
        assert (
            await memories.list_memories(5, shoes[117].id, MemoryFilter(app="shop")) == shoes[118:]
        )
        assert await memories.list_memories(only=MemoryFilter(tags=("t",))) == [hat]
        assert await memories.reindex() == 121
        await memories.remove(hat.id)
        with pytest.raises(NotFound, match=hat.id):
            await memories.get(hat.id)
        with pytest.raises(Invalid):
            await memories.get("../me")
        with pytest.raises(Invalid, match="this one 10,485,760"):
            await memories.put("a" * 10 * 1024 * 1024)
        with pytest.raises(NotFound):
            await memories.ingest("0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b")
    other = await idle_stage.client("dora")
    found = await other.post("/v1/search/memories", json={"query": "shoe1"})
    assert found.json() == {"items": []}
