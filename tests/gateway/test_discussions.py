"""Discussions through the native API."""

import asyncio
import io
import json
import zipfile
from typing import Any

import pytest

from perdure.api.discussions import DISCUSSION_FRAME
from tests.gateway.stage import GatewayStage, open_gateway
from tests.harness import ConversationHarness
from tests.workflows.discussion.debate import PASS, ballot, script, wants

PATH = "/v1/discussions"


def table(stage: GatewayStage, **changes: Any) -> dict[str, Any]:
    """Return the discussion of ada, who wants tea, and bob, who says nothing."""
    folder = stage.harness.folder
    answers = [wants(3), "Tea is calm.", ballot("tea")]
    return {
        "topic": "Tea or coffee?",
        "agents": [
            {"id": "ada", "persona": "You like tea.", "model": script(folder, answers)},
            {"id": "bob", "model": script(folder, [PASS, ballot("tea")])},
        ],
        "phases": [{"name": "decision", "end": "vote", "options": ["tea", "coffee"]}],
        **changes,
    }


async def start(stage: GatewayStage, session_id: str, **changes: Any) -> str:
    body = {"discussion": table(stage, **changes), "id": session_id}
    started = await stage.anna.post(PATH, json=body)
    assert started.status_code == 201, started.text
    return f"{PATH}/{session_id}"


async def wait_until(stage: GatewayStage, path: str, *statuses: str) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while True:
            shown = (await stage.anna.get(path)).json()
            if shown["status"]["status"] in statuses:
                return dict(shown)
            await asyncio.sleep(0.1)


def slow(stage: GatewayStage) -> list[dict[str, Any]]:
    """Return agents of whom the one that speaks takes its time."""
    answers: list[str | dict[str, Any]] = [
        {"content": wants(1), "delay": 1.0},
        "Yes.",
        ballot("yes"),
    ]
    return [{"id": "ada", "model": script(stage.harness.folder, answers)}]


@pytest.mark.long
async def test_a_discussion_is_started_followed_and_exported(stage: GatewayStage) -> None:
    path = await start(stage, "tea")
    again = await stage.anna.post(PATH, json={"discussion": table(stage), "id": "tea"})
    assert (again.status_code, again.json()["code"]) == (409, "conflict")  # other scripts
    frames: list[Any] = []
    async with stage.anna.stream("GET", f"{path}/stream") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        async for line in response.aiter_lines():
            if line.startswith("data: "):
                frames.append(DISCUSSION_FRAME.validate_json(line[6:]))
                if getattr(frames[-1], "status", None) and frames[-1].status.status == "finished":
                    break
    assert frames[0].kind == "sync"
    durable = [frame for frame in frames if frame.kind == "durable"]
    assert [frame.sequence for frame in durable] == list(range(1, len(durable) + 1))
    assert "Tea is calm." in [frame.event["content"] for frame in durable]
    assert frames[-1].status.tally.winner == "tea"

    first = (await stage.anna.get(f"{path}/events", params={"limit": 2})).json()
    rest = (await stage.anna.get(f"{path}/events", params={"after": 2})).json()
    assert [*first["items"], *rest["items"]] == [frame.event for frame in durable]
    assert first["end"] == len(durable)
    late = await stage.anna.get(
        f"{path}/stream", params={"follow": "false"}, headers={"Last-Event-ID": "3"}
    )
    assert "id: 3\n" not in late.text
    assert "id: 4\n" in late.text
    lines = (await stage.anna.get(f"{path}/export")).text.splitlines()
    assert [json.loads(line) for line in lines] == [frame.event for frame in durable]
    page = await stage.anna.get(f"{path}/export", params={"format": "html"})
    assert "Tea is calm." in page.text
    assert page.headers["content-security-policy"] == "default-src 'none'; sandbox"
    archive = await stage.anna.get(f"{path}/export", params={"format": "results"})
    with zipfile.ZipFile(io.BytesIO(archive.content)) as files:
        assert files.namelist() == ["ada.json", "bob.json"]
        assert b"Tea is calm." in files.read("ada.json")
    listed = (await stage.anna.get(PATH)).json()["items"]
    assert [(it["id"], it["topic"], it["agents"]) for it in listed] == [
        ("tea", "Tea or coffee?", ["ada", "bob"])
    ]
    own = listed[0]["conversations"]["ada"]
    assert (await stage.anna.get(f"/v1/conversations/{own}/events")).json()["items"]
    assert (await stage.anna.get(f"{path}/spec")).json()["agents"][0]["persona"] == "You like tea."
    assert (await stage.anna.post(f"{path}/pause")).status_code == 409


@pytest.mark.long
async def test_a_person_speaks_and_votes_while_it_is_steered(stage: GatewayStage) -> None:
    path = await start(
        stage, "talk", agents=slow(stage), phases=[{"name": "decision", "end": "vote"}]
    )
    assert (await stage.anna.post(f"{path}/pause")).status_code == 204
    await wait_until(stage, path, "paused")
    said = asyncio.create_task(stage.anna.post(f"{path}/say", json={"text": "I pay.", "id": "one"}))
    voted = asyncio.create_task(
        stage.anna.post(f"{path}/vote", json={"ballot": "no", "speaker": "eve", "reason": "dear"})
    )
    await asyncio.sleep(0.2)
    assert (await stage.anna.post(f"{path}/resume")).status_code == 204
    places = [(await said).json()["sequence"], (await voted).json()["sequence"]]
    shown = await wait_until(stage, path, "finished")
    assert shown["status"]["tally"]["counts"] == {"yes": 1, "no": 1}
    events = {it["sequence"]: it for it in (await stage.anna.get(f"{path}/events")).json()["items"]}
    assert [(events[it]["speaker"], events[it]["content"]) for it in places] == [
        ("anna", "I pay."),
        ("eve", {"ballot": "no", "reason": "dear"}),
    ]
    late = await stage.anna.post(f"{path}/say", json={"text": "Too late."})
    assert (late.status_code, late.json()["code"]) == (409, "conflict")


@pytest.mark.long
async def test_what_a_person_may_not_contribute_is_refused(stage: GatewayStage) -> None:
    path = await start(stage, "refused", agents=slow(stage))
    for route, body, says in (
        ("say", {"text": ""}, "body.text"),
        ("say", {}, "body.text"),
        ("vote", {}, "body.ballot: Field required"),
        ("vote", {"ballot": ""}, "body.ballot"),
        ("say", {"text": "I am ada.", "speaker": "ada"}, "no name of a person"),
        ("say", {"text": "I am it.", "speaker": "system"}, "no name of a person"),
        ("say", {"text": "Hello.", "reply_to": "no id"}, "reply_to"),
        ("vote", {"ballot": "yes", "why": "x"}, "body.why"),
    ):
        refused = await stage.anna.post(f"{path}/{route}", json=body)
        assert refused.status_code == 422, (body, refused.text)
        assert says in refused.json()["detail"], body
    assert (await stage.anna.post(f"{path}/close")).status_code == 204
    await wait_until(stage, path, "closed")
    assert (await stage.anna.get(f"{path}/export?format=pdf")).status_code == 422


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"agents": []}, "agents"),
        ({"agents": None}, "agents"),
        ({"agents": [{"id": "ada"}]}, "agent"),
        ({"agents": [{"id": "system", "model": "m"}]}, "no agent may be called system"),
        ({"agents": [{"id": "ada", "agent": "nobody"}]}, "no agent 'nobody'"),
        ({"agents": [{"id": "ada", "model": "m", "tool": []}]}, "tool"),
        ({"topic": ""}, "topic"),
        ({"fases": []}, "fases"),
        ({"phases": [{"name": "x", "round": 3}]}, "round"),
        ({"limits": {"money": 3}}, "money"),
    ],
)
async def test_a_discussion_that_is_none_is_refused(
    idle_stage: GatewayStage, changes: dict[str, Any], says: str
) -> None:
    body = {"discussion": {**table(idle_stage), **changes}}
    refused = await idle_stage.anna.post(PATH, json=body)
    assert refused.status_code == 422, refused.text
    assert says in refused.json()["detail"] + refused.json()["hint"]


@pytest.mark.long
async def test_agents_of_users_who_are_not_trusted_are_those_of_the_installation(
    world: ConversationHarness,
) -> None:
    scripted = world.spec({"content": PASS}, tools=()).model_dump(mode="json", exclude_unset=True)
    settings: dict[str, Any] = {
        "gateway_trusted": False,
        "agents": {"scripted": scripted},
    }
    async with world.worker(), open_gateway(world, **settings) as stage:
        named = {"topic": "What?", "agents": [{"id": "ada", "agent": "scripted"}]}
        for changes in (
            {"agents": [{"id": "ada", "model": "scripted:/etc/passwd"}]},
            {"agents": [{"id": "ada", "agent": {**scripted, "code": "/tmp"}}]},
            {"moderator": {"policy": "model", "model": "openai/gpt-9"}},
        ):
            refused = await stage.anna.post(PATH, json={"discussion": {**named, **changes}})
            assert (refused.status_code, refused.json()["code"]) == (422, "invalid"), changes
        started = await stage.anna.post(PATH, json={"discussion": named, "id": "named"})
        assert started.status_code == 201, started.text
        await wait_until(stage, f"{PATH}/named", "finished")
