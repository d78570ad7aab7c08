"""Batches through the native API."""

import asyncio
from typing import Any

import pytest

from tests.gateway.stage import GatewayStage, as_json, open_gateway
from tests.harness import ConversationHarness, text_answer

SAMPLES = [
    {"id": f"s{number}", "input": f"What is {number} + 1?", "target": "5"} for number in range(6)
]


def table(stage: GatewayStage, name: str = "sums", **more: Any) -> dict[str, Any]:
    agent = as_json(stage.harness.spec(*[text_answer("5")] * 10, tools=("think",)))
    return {"name": name, "agent": agent, "scorers": ["match"], "concurrency": 3, **more}


async def wait_until_finished(stage: GatewayStage, name: str) -> dict[str, Any]:
    while True:
        batch = (await stage.anna.get(f"/v1/batches/{name}")).json()
        if batch["progress"]["status"] == "finished":
            return dict(batch)
        await asyncio.sleep(0.2)


@pytest.mark.long
async def test_a_batch_is_started_shown_and_read(stage: GatewayStage) -> None:
    body = {"batch": table(stage), "samples": SAMPLES}
    started = await stage.anna.post("/v1/batches", json=body)
    assert started.status_code == 201, started.text
    assert started.headers["location"] == "/v1/batches/sums"
    assert (started.json()["samples"], started.json()["attached"]) == (6, False)
    again = await stage.anna.post("/v1/batches", json=body)
    assert again.status_code in (200, 201), again.text
    done = await wait_until_finished(stage, "sums")
    assert done["progress"]["scored"] == 6
    path = "/v1/batches/sums"
    first = (await stage.anna.get(f"{path}/results", params={"limit": 4})).json()
    cursor = first["next_cursor"]
    rest = (await stage.anna.get(f"{path}/results", params={"cursor": cursor})).json()
    found = [*first["items"], *rest["items"]]
    assert [item["id"] for item in found] == [sample["id"] for sample in SAMPLES]
    assert rest["next_cursor"] is None
    assert all(item["attempts"][0]["scores"]["match"]["value"] == 1 for item in found)
    sample = found[0]["attempts"][0]["conversation_id"]
    events = (await stage.anna.get(f"/v1/conversations/{sample}/events")).json()
    assert events["items"]
    summary = (await stage.anna.get(f"{path}/summary")).json()
    assert summary["measures"][0]["estimates"]["mean"]["mean"] == 1.0
    report = await stage.anna.get(f"{path}/report")
    assert "sums" in report.text
    assert report.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert (await stage.anna.get(f"{path}/spec")).json()["concurrency"] == 3
    assert [item["name"] for item in (await stage.anna.get("/v1/batches")).json()["items"]] == [
        "sums"
    ]
    rescored = await stage.anna.post(f"{path}/retry", json={"mode": "rescore"})
    assert rescored.status_code == 200, rescored.text
    await wait_until_finished(stage, "sums")


@pytest.mark.long
async def test_a_batch_is_steered_while_it_runs(stage: GatewayStage) -> None:
    slow = as_json(stage.harness.spec({"content": "5", "delay": 0.5}, tools=("think",)))
    body = {"batch": {**table(stage, "slow"), "agent": slow, "concurrency": 1}, "samples": SAMPLES}
    assert (await stage.anna.post("/v1/batches", json=body)).status_code == 201
    path = "/v1/batches/slow"
    assert (await stage.anna.post(f"{path}/pause")).status_code == 204
    while (await stage.anna.get(path)).json()["progress"]["status"] != "paused":
        await asyncio.sleep(0.1)
    tuned = await stage.anna.post(f"{path}/retune", json={"concurrency": 5})
    assert tuned.json()["concurrency"] == 5
    attached = await stage.anna.post("/v1/batches", json=body)
    assert attached.status_code in (200, 409)
    assert (await stage.anna.post(f"{path}/resume")).status_code == 204
    await wait_until_finished(stage, "slow")
    assert (await stage.anna.post(f"{path}/pause")).status_code == 409


@pytest.mark.long
async def test_a_batch_is_its_users_alone(stage: GatewayStage) -> None:
    body = {"batch": table(stage, "mine"), "samples": SAMPLES[:1]}
    await stage.anna.post("/v1/batches", json=body)
    await wait_until_finished(stage, "mine")
    path = "/v1/batches/mine"
    for method, route, sent in (
        ("GET", "", None),
        ("GET", "/spec", None),
        ("GET", "/results", None),
        ("GET", "/summary", None),
        ("GET", "/report", None),
        ("POST", "/pause", None),
        ("POST", "/resume", None),
        ("POST", "/retune", {"concurrency": 2}),
        ("POST", "/retry", {}),
    ):
        strange = await stage.ben.request(method, path + route, json=sent)
        absent = await stage.ben.request(method, "/v1/batches/none" + route, json=sent)
        assert strange.status_code == 404, route
        assert strange.text.replace("mine", "none") == absent.text
    assert (await stage.ben.get("/v1/batches")).json()["items"] == []
    bens = {"batch": table(stage, "mine"), "samples": SAMPLES[:2]}
    assert (await stage.ben.post("/v1/batches", json=bens)).json()["samples"] == 2
    assert (await stage.anna.get(path)).json()["samples"] == 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"dataset": "/etc/passwd"}, "dataset"),
        ({"models": ["a", "b"]}, "models"),
        ({"scorers": ["none"]}, "no scorer"),
        ({"name": "../up"}, "name"),
        ({"concurency": 3}, "concurency"),
        ({"agent": "nobody"}, "no agent"),
    ],
)
async def test_a_batch_that_is_none_is_refused(
    idle_stage: GatewayStage, changes: dict[str, Any], says: str
) -> None:
    body = {"batch": {**table(idle_stage), **changes}, "samples": SAMPLES}
    refused = await idle_stage.anna.post("/v1/batches", json=body)
    assert refused.status_code == 422, refused.text
    assert says in refused.json()["detail"]


async def test_rows_name_no_files_of_the_gateway(stage: GatewayStage) -> None:
    for rows in (
        [{"input": "?", "files": {"a": {"source": "pyproject.toml"}}}],
        [{"input": "?", "files": {"/etc/x": "text"}}],
        [{"question": "?"}],
        [{"input": "?", "id": "a"}, {"input": "!", "id": "a"}],
    ):
        refused = await stage.anna.post(
            "/v1/batches", json={"batch": table(stage), "samples": rows}
        )
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid"), rows


@pytest.mark.long
async def test_a_batch_of_users_who_are_not_trusted_has_no_code_and_no_addresses(
    world: ConversationHarness,
) -> None:
    scripted = world.spec(text_answer("5")).model_dump(mode="json", exclude_unset=True)
    settings: dict[str, Any] = {
        "gateway_trusted": False,
        "agents": {"scripted": scripted},
    }
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x"}}]}]
    async with world.worker(), open_gateway(world, **settings) as stage:
        for changes, rows in (
            ({"scorers": ["os:system"]}, SAMPLES),
            ({"scorers": [{"kind": "model_graded", "model": {"name": "openai/gpt-6"}}]}, SAMPLES),
            ({"agent": {"model": "scripted:/etc/passwd"}}, SAMPLES),
            ({"model": "openai/gpt-6"}, SAMPLES),
            ({}, [{"input": image}]),
        ):
            batch = {"name": "x", "agent": "scripted", "scorers": ["match"], **changes}
            refused = await stage.anna.post("/v1/batches", json={"batch": batch, "samples": rows})
            assert (refused.status_code, refused.json()["code"]) == (422, "invalid"), changes
        batch = {"name": "x", "agent": "scripted", "scorers": ["match"]}
        body = {"batch": batch, "samples": SAMPLES[:1]}
        assert (await stage.anna.post("/v1/batches", json=body)).status_code == 201
        await wait_until_finished(stage, "x")
