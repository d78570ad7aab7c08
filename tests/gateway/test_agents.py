"""Named agents and settings of a gateway's users."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from perdure.storage.log.state import read_agent
from tests.gateway.stage import GatewayStage, open_gateway
from tests.harness import ConversationHarness, text_answer


@pytest_asyncio.fixture
async def stage(world: ConversationHarness) -> AsyncIterator[GatewayStage]:
    """A gateway whose users are not trusted, with two agents; one may do what users may not."""
    scripted = world.spec(text_answer("It is 5.")).model_dump(mode="json", exclude_unset=True)
    settings: dict[str, Any] = {
        "gateway_trusted": False,
        "agents": {
            "plain": {**scripted, "tools": ["think", "finish"], "description": "Thinks."},
            "strong": {"extends": "plain", "network": True, "secrets": ["TOKEN"]},
        },
    }
    async with world.worker(), open_gateway(world, **settings) as opened:
        yield opened


async def agent_of(stage: GatewayStage, name: str) -> Any:
    conversation = stage.gateway.client_for("anna").conversation(name)
    await conversation.result()
    return await read_agent(conversation.log, await conversation.state())


async def start(stage: GatewayStage, agent: Any) -> Any:
    body = {"text": "2 + 3?", "agent": agent}
    return await stage.anna.post("/v1/conversations", json=body)


@pytest.mark.long
async def test_a_user_keeps_agents_that_no_other_sees(stage: GatewayStage) -> None:
    table = {"extends": "plain", "description": "Mine.", "limits": {"max_budget": None}}
    put = await stage.anna.put("/v1/agents/mine", json=table)
    assert (put.status_code, put.json()["own"]) == (200, True), put.text
    shown = (await stage.anna.get("/v1/agents/mine")).json()
    assert (shown["definition"], shown["description"]) == (table, "Mine.")
    assert shown["tools"] == ["think", "finish"]
    listed = (await stage.anna.get("/v1/agents")).json()["items"]
    assert [(it["name"], it["own"]) for it in listed] == [
        ("plain", False),
        ("strong", False),
        ("mine", True),
    ]
    assert "definition" not in {name for name in listed[0] if listed[0][name] is not None}
    names = [it["name"] for it in (await stage.ben.get("/v1/agents")).json()["items"]]
    assert names == ["plain", "strong"]
    assert (await stage.ben.get("/v1/agents/mine")).status_code == 404
    assert (await stage.ben.delete("/v1/agents/mine")).status_code == 404
    body = {"text": "?", "agent": "mine"}
    assert (await stage.ben.post("/v1/conversations", json=body)).status_code == 422
    started = await start(stage, "mine")
    agent = await agent_of(stage, started.json()["id"])
    assert (agent.agent, agent.sources["limits.max_budget"]) == ("mine", "the user's agent mine")
    assert (await stage.anna.delete("/v1/agents/mine")).status_code == 204
    assert (await stage.anna.delete("/v1/agents/mine")).status_code == 404
    assert (await start(stage, "mine")).status_code == 422


@pytest.mark.long
async def test_the_start_is_stronger_than_settings_and_these_than_an_agent(
    stage: GatewayStage,
) -> None:
    settings = {"agent": {"limits": {"max_iterations": 7, "max_events": 900}, "tags": ["x"]}}
    assert (await stage.anna.put("/v1/settings", json=settings)).json() == settings
    assert (await stage.anna.get("/v1/settings")).json() == settings
    assert (await stage.ben.get("/v1/settings")).json() == {"agent": {}}
    started = await start(stage, {"extends": "plain", "limits": {"max_iterations": 8}})
    assert started.status_code == 201, started.text
    agent = await agent_of(stage, started.json()["id"])
    assert (agent.limits.max_iterations, agent.limits.max_events) == (8, 900)
    assert agent.sources["limits.max_iterations"] == "start"
    assert agent.sources["limits.max_events"] == "the user's settings"
    assert agent.sources["tools"] == "[agents.plain]"


@pytest.mark.long
@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"tool": []}, "The agent x, tool: An agent has no 'tool': did you mean tools?"),
        ({"extends": "nobody"}, "The agent x, extends: There is no agent 'nobody'."),
        ({"extends": "x"}, "The agent x, extends: Agents extend one another in a circle: x -> x."),
        ({"extends": "plain", "parallel": "y"}, "The agent x, parallel: The agent is invalid: par"),
        ({"extends": "plain", "workspace": "/etc"}, "An agent may not work in a directory of"),
        ({"extends": "plain", "model": "openai/gpt-6"}, "The model 'openai/gpt-6' may not be used"),
        ({"extends": "plain", "secrets": ["OTHER"]}, "The secret 'OTHER' may not be used here"),
        ({"extends": "strong", "tools": ["terminal"]}, "The tool 'terminal' may not be added: the"),
        ({"extends": "strong", "secrets": ["OTHER"]}, "The secret 'OTHER' may not be used here"),
        ({"network": True}, "Commands may not have network access here"),
        (
            {"extends": "plain", "delegates": [{"name": "y", "agent": {"model": "openai/gpt-6"}}]},
            "The model 'openai/gpt-6' may not be used here.",
        ),
    ],
)
async def test_an_agent_that_may_not_be_is_neither_kept_nor_started(
    stage: GatewayStage, table: dict[str, Any], sentence: str
) -> None:
    refused = await stage.anna.put("/v1/agents/x", json=table)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid"), refused.text
    assert refused.json()["detail"].startswith(sentence)
    assert (await stage.anna.get("/v1/agents/x")).status_code == 404
    assert (
        await start(stage, {**table, "extends": table.get("extends", "plain")})
    ).status_code in ((422,) if table.get("extends") != "x" else (422, 400))


@pytest.mark.long
async def test_what_a_stronger_agent_may_do_its_users_may_change_but_not_extend(
    stage: GatewayStage,
) -> None:
    changed = {"extends": "strong", "limits": {"max_iterations": 3}, "tools": ["finish"]}
    assert (await stage.anna.put("/v1/agents/weak", json=changed)).status_code == 200
    agent = await agent_of(stage, (await start(stage, "weak")).json()["id"])
    assert (agent.network, agent.tools, agent.secrets) == (True, ("finish",), ("TOKEN",))


BAD_REQUESTS: tuple[tuple[str, Any, int], ...] = (
    ("/v1/agents/default", {"extends": "plain"}, 422),
    ("/v1/agents/a%2Fb", {"extends": "plain"}, 404),
    ("/v1/agents/a b", {"extends": "plain"}, 422),
    ("/v1/agents/x", [], 422),
    ("/v1/agents/x", {}, 422),
    ("/v1/settings", {"agent": {"modle": "m"}}, 422),
    ("/v1/settings", {"agent": {"network": True}}, 422),
    ("/v1/settings", {"agents": {}}, 422),
)


@pytest.mark.long
async def test_bad_requests_are_refused(stage: GatewayStage) -> None:
    for path, body, status in BAD_REQUESTS:
        response = await stage.anna.put(path, json=body)
        assert response.status_code == status, (path, body)


@pytest.mark.long
async def test_an_agent_whose_parent_is_gone_says_so(stage: GatewayStage) -> None:
    await stage.anna.put("/v1/agents/parent", json={"extends": "plain"})
    await stage.anna.put("/v1/agents/child", json={"extends": "parent"})
    await stage.anna.delete("/v1/agents/parent")
    listed = {it["name"]: it for it in (await stage.anna.get("/v1/agents")).json()["items"]}
    assert listed["child"]["problem"] == "The agent child, extends: There is no agent 'parent'."
