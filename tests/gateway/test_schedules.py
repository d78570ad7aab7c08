"""Schedules through the native API, by hand and by the library."""

import asyncio
import json
import logging
from typing import Any

import httpx
import pytest

from perdure.agent.spec import Agent
from perdure.client.http.client import HttpClient
from perdure.client.schedules.http_schedules import HttpSchedules
from perdure.client.schedules.protocol import build_definition
from perdure.client.schedules.schedules import Schedules
from perdure.errors import Conflict, Forbidden, Invalid, NotFound
from perdure.gateway.routes.schedules import MAX_SCHEDULES
from tests.gateway.page.conftest import key_of
from tests.gateway.stage import GatewayStage, as_json
from tests.gateway.test_limits import audit_records
from tests.harness import text_answer

PATH = "/v1/schedules"
AGENT = {"model": {"name": "scripted:none.json"}, "tools": ["think"]}


def body(**fields: Any) -> dict[str, Any]:
    return {"text": "Look.", "cron": ["0 8 1 1 *"], "agent": AGENT, **fields}


async def create(client: httpx.AsyncClient, name: str, **fields: Any) -> dict[str, Any]:
    made = await client.post(f"{PATH}/{name}", json=body(**fields))
    assert made.status_code == 201, made.text
    return dict(made.json())


async def test_a_schedule_begins_a_conversation_of_its_user(stage: GatewayStage) -> None:
    agent = as_json(stage.harness.spec(text_answer("Nothing new.")))
    await create(stage.anna, "news", agent=agent)  # deleted below: Temporal is that of all tests
    assert (await stage.anna.post(f"{PATH}/news/trigger")).status_code == 200
    async with asyncio.timeout(60):
        while not (recent := (await stage.anna.get(f"{PATH}/news")).json()["recent_firings"]):
            await asyncio.sleep(0.1)
        name = recent[0]["conversation_id"]
        while (await stage.anna.get(f"/v1/conversations/{name}")).status_code == 404:
            await asyncio.sleep(0.1)
    shown = await stage.wait_until(name, "finished")
    assert shown["status"]["tags"] == ["schedule:news"]
    assert (await stage.ben.get(f"/v1/conversations/{name}")).status_code == 404
    assert (await stage.anna.delete(f"{PATH}/news")).status_code == 204


async def test_schedules_are_listed_paused_resumed_and_deleted(
    idle_stage: GatewayStage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "perdure.gateway.audit")
    anna = await idle_stage.client("anna-schedules")
    made = await create(anna, "daily", cron=["0 8 * * 1-5"], time_zone="Europe/Oslo")
    assert made["definition"]["time_zone"] == "Europe/Oslo"
    assert (made["agent"], made["paused"]) == ("scripted:none.json", False)
    assert made["next_times"]
    paused = await anna.post(f"{PATH}/daily/pause", json={"note": "holidays"})
    assert (paused.json()["paused"], paused.json()["note"]) == (True, "holidays")
    resumed = await anna.post(f"{PATH}/daily/resume", json={})
    assert resumed.json()["paused"] is False
    async with asyncio.timeout(30):  # the list is a little behind
        while not (items := (await anna.get(PATH)).json()["items"]):
            await asyncio.sleep(0.1)
    assert [it["name"] for it in items] == ["daily"]
    again = await anna.post(f"{PATH}/daily", json=body())
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    assert (await anna.delete(f"{PATH}/daily")).status_code == 204
    assert (await anna.get(f"{PATH}/daily")).status_code == 404
    lines = [json.loads(record.message) for record in audit_records(caplog)]
    acts = [line["act"] for line in lines if line.get("schedule") == "daily"]
    assert acts == ["schedule.create", "schedule.delete"]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"cron": ["at noon"]}, "Temporal refuses the schedule"),
        ({"cron": ["0 0 30 2 *"]}, "never begins"),
        ({"cron": []}, "give `cron` or `every`"),
        ({"every": 5}, "60 seconds at least"),
        ({"time_zone": "Mars/Base"}, "There is no time zone"),
        ({"agent": "nobody"}, "nobody"),
        ({"conversation_id": "01a20dd5-34bc-7385-bafd-6ea6a1e795ea"}, "has an agent already"),
    ],
)
async def test_a_schedule_that_is_none_is_refused_with_a_sentence(
    idle_stage: GatewayStage, fields: dict[str, Any], sentence: str
) -> None:
    refused = await idle_stage.anna.post(f"{PATH}/odd", json=body(**fields))
    assert refused.status_code == 422
    assert sentence in refused.text
    assert (await idle_stage.anna.get(f"{PATH}/odd")).status_code == 404


async def test_a_message_goes_to_a_conversation_of_ones_own_alone(
    idle_stage: GatewayStage,
) -> None:
    absent = "01a20dd5-34bc-7385-bafd-6ea6a1e795ea"
    fields = {"text": "Look.", "cron": ["0 8 1 1 *"], "conversation_id": absent}
    refused = await idle_stage.anna.post(f"{PATH}/odd", json=fields)
    assert refused.status_code == 404


@pytest.mark.long
async def test_a_user_has_so_many_schedules_at_most(idle_stage: GatewayStage) -> None:
    anna = await idle_stage.client("anna-many")
    for nth in range(MAX_SCHEDULES):
        await create(anna, f"s{nth}")
    async with asyncio.timeout(30):
        while len((await anna.get(PATH)).json()["items"]) < MAX_SCHEDULES:
            await asyncio.sleep(0.1)
    refused = await anna.post(f"{PATH}/more", json=body())
    assert refused.status_code == 409
    assert "100 schedules" in refused.text


async def test_the_library_has_the_same_schedules(idle_stage: GatewayStage) -> None:
    anna = await idle_stage.client("anna-library")
    async with HttpClient(idle_stage.url, key_of(anna)) as client:
        schedules = Schedules.from_client(client)  # type: ignore[arg-type]
        assert isinstance(schedules, HttpSchedules)
        definition = build_definition("Look.", cron=("0 8 1 1 *",))
        made = await schedules.create("own", definition, Agent.model_validate(AGENT))
        assert made == await schedules.get("own")
        assert made.definition == definition
        await schedules.pause("own", "why")
        assert (await schedules.get("own")).note == "why"
        await schedules.resume("own")
        with pytest.raises(Conflict, match="There is a schedule own already"):
            await schedules.create("own", definition, Agent.model_validate(AGENT))
        with pytest.raises(Invalid, match="has to begin before it ends"):
            await schedules.backfill("own", "2026-01-02", "2026-01-01")
        with pytest.raises(Invalid, match="no name of a schedule"):
            await schedules.get("a/b")
        async with asyncio.timeout(30):
            while [it.name for it in await schedules.list_schedules()] != ["own"]:
                await asyncio.sleep(0.1)
        await schedules.delete("own")
        with pytest.raises(NotFound, match="There is no schedule own"):
            await schedules.trigger("own")


async def test_whoever_may_only_read_changes_no_schedule(idle_stage: GatewayStage) -> None:
    reader = await idle_stage.client("anna-reads", ["read"])
    async with HttpClient(idle_stage.url, key_of(reader)) as client:
        schedules = HttpSchedules(client)
        assert await schedules.list_schedules() == []
        with pytest.raises(Forbidden):
            await schedules.create("own", build_definition("Look.", every=60))
