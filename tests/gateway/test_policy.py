"""What an agent of a request may be."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from perdure.agent.spec import Agent
from perdure.errors import Invalid
from perdure.gateway.agents.catalog import AgentCatalog, AgentUser
from perdure.gateway.agents.policy import AgentPolicy
from perdure.settings.errors import SettingsError
from perdure.settings.settings import Settings
from perdure.storage.open import open_store
from perdure.storage.user_agents import UserAgents
from tests.gateway.stage import GatewayStage, open_gateway
from tests.harness import ConversationHarness, text_answer

MODEL = "openai/gpt-5"

REFUSED: dict[str, dict[str, Any]] = {
    "another model": {"model": "openai/gpt-6"},
    "a script": {"model": "scripted:/etc/passwd"},
    "a model that is code": {"model": "python:os:system"},
    "an address": {"model": {"name": MODEL, "api_base": "http://169.254.169.254/v1"}},
    "an address of a fallback": {"fallbacks": [{"name": MODEL, "api_base": "http://10.0.0.1"}]},
    "another fallback": {"fallbacks": ["openai/gpt-6"]},
    "another model of titles": {"title_model": "openai/gpt-6"},
    "another model of summaries": {
        "condenser": {"kind": "llm_summary", "model": {"name": "openai/gpt-6"}}
    },
    "a summary's address within a pipeline": {
        "condenser": {
            "kind": "pipeline",
            "condensers": [
                {"kind": "llm_summary", "model": {"name": MODEL, "api_base": "http://x"}}
            ],
        }
    },
    "a folder": {"workspace": "/etc"},
    "code": {"code": "/srv/code"},
    "a program": {"mcp": [{"name": "x", "command": "sh", "args": ["-c", "id"]}]},
    "a server": {"mcp": [{"name": "x", "url": "http://127.0.0.1:8233"}]},
    "a folder of skills": {"skills": {"folders": ["/etc"]}},
    "the network": {"network": True},
    "a tool that is code": {"tools": ["terminal", "os:system"]},
    "an analyzer that is code": {"analyzers": ["os:system"]},
    "a condenser that is code": {"condenser": {"kind": "custom", "function": "os:system"}},
    "a secret": {"secrets": ["DATABASE_PASSWORD"]},
    "a server of repositories": {"repository": "https://git.internal/a/b"},
    "a server by another protocol": {"repository": "git://github.com/a/b"},
    "a server whose name begins so": {"repository": "https://github.com.example.org/a/b"},
    "a token": {"repository": "https://github.com/a/b", "repository_token": "DEPLOY_TOKEN"},
}


@pytest.fixture
def nobody(tmp_path: Path) -> AgentUser:
    """A user who has said nothing of agents, and has handed no secret in."""
    return AgentUser(UserAgents(open_store(tmp_path.as_uri()), "anna"), list_none)


async def list_none() -> tuple[str, ...]:
    return ()


def policy(**settings: Any) -> AgentPolicy:
    return AgentCatalog(Settings(model=MODEL, **settings)).policy


@pytest.mark.parametrize("fields", REFUSED.values(), ids=REFUSED.keys())
def test_an_agent_reaches_nothing_that_is_the_workers(fields: dict[str, Any]) -> None:
    agent = Agent.model_validate({"model": MODEL, **fields})
    with pytest.raises(Invalid) as refused:
        policy().check(agent)
    assert str(refused.value).endswith((".", "`."))
    assert refused.value.hint
    policy(gateway_trusted=True).check(agent)


def test_a_users_own_secret_may_be_used_and_a_known_server_asked() -> None:
    agent = Agent(
        MODEL,
        secrets=("TICKETS",),
        repository="https://github.com/a/b",
        repository_token="GITHUB_TOKEN",
    )
    policy().check(agent, own_secrets={"TICKETS", "GITHUB_TOKEN"})
    with pytest.raises(Invalid, match="'GITHUB_TOKEN' may not be used here"):
        policy().check(agent, own_secrets={"TICKETS"})
    own = Agent(MODEL, repository="https://git.internal/a/b")
    policy(gateway_repositories=("https://git.internal/*",)).check(own)


def test_the_token_of_an_installations_agent_goes_to_no_other_repository() -> None:
    agent = Agent(MODEL, repository="https://git.internal/a/b", repository_token="DEPLOY_TOKEN")
    elsewhere = agent.model_copy(update={"repository": "https://github.com/mine/b"})
    policy().check(agent, agent)
    with pytest.raises(Invalid, match="'DEPLOY_TOKEN' may not be used here"):
        policy().check(elsewhere, agent)


def test_what_is_harmless_or_allowed_is_taken() -> None:
    agent = Agent.model_validate(
        {
            "model": {"name": MODEL, "temperature": 0.5},
            "fallbacks": ["anthropic/claude-sonnet-4-5"],
            "tools": ["terminal", "think"],
            "secrets": ["API_TOKEN"],
            "limits": {"max_iterations": 5},
            "instructions": "Be brief.",
        }
    )
    allowed = policy(gateway_models=("anthropic/*",), gateway_secrets=("API_TOKEN",))
    allowed.check(agent)
    assert not allowed.allows_model("openai/gpt-6")
    assert not policy(gateway_models=("*",)).allows_model("scripted:/etc/passwd")
    assert policy(gateway_models=("*",)).allows_model("openai/gpt-6")


def test_what_an_agent_had_before_may_stay() -> None:
    before = Agent.model_validate(
        {"model": {"name": "own", "api_base": "http://gpu:8000/v1"}, "workspace": "/srv/work"}
    )
    warmer = before.model.model_copy(update={"temperature": 1.0})
    policy().check(before.model_copy(update={"model": warmer}), before)
    moved = before.model.model_copy(update={"api_base": "http://elsewhere"})
    with pytest.raises(Invalid):
        policy().check(before.model_copy(update={"model": moved}), before)


@pytest.mark.parametrize(
    ("images", "is_allowed"),
    [
        (["data:image/png;base64,AA=="], True),
        (["https://example.org/a.png"], False),
        (["http://169.254.169.254/latest"], False),
    ],
)
def test_an_image_is_no_address(images: list[str], is_allowed: bool) -> None:
    if is_allowed:
        policy().check_images(images)
        return
    with pytest.raises(Invalid, match="address"):
        policy().check_images(images)


async def test_the_agents_of_the_settings_are_built_upon_the_default(nobody: AgentUser) -> None:
    settings = Settings(
        model=MODEL,
        agent={"instructions": "Be brief."},
        agents={
            "coder": {"tools": ["terminal"], "workspace": "/srv/code"},
            "thinker": {"model": {"name": "openai/o5", "reasoning_effort": "high"}},
        },
    )
    catalog = AgentCatalog(settings)
    assert list(catalog.agents) == ["default", "coder", "thinker"]
    coder = await catalog.choose(nobody, "coder", None)
    assert (coder.model.name, coder.instructions) == (MODEL, "Be brief.")
    assert coder.workspace == "/srv/code"
    assert catalog.policy.models == (MODEL, "openai/o5")
    thinker = await catalog.choose(nobody, "thinker", MODEL)
    assert (thinker.model.name, thinker.model.reasoning_effort) == (MODEL, "high")
    with pytest.raises(Invalid, match="no agent 'other'"):
        await catalog.choose(nobody, "other", None)
    with pytest.raises(Invalid, match="may not be used"):
        await catalog.choose(nobody, "coder", "openai/gpt-6")


async def test_without_a_model_a_request_has_to_name_one(nobody: AgentUser) -> None:
    catalog = AgentCatalog(Settings(gateway_models=("openai/*",)))
    assert catalog.agents == {}
    with pytest.raises(Invalid, match="No model"):
        await catalog.choose(nobody, None, None)
    assert (await catalog.choose(nobody, None, MODEL)).model.name == MODEL


def test_an_agent_of_the_settings_that_is_none_is_refused_at_the_start() -> None:
    with pytest.raises(SettingsError, match="did you mean tools"):
        AgentCatalog(Settings(model=MODEL, agents={"a": {"tool": ["terminal"]}}))


@pytest_asyncio.fixture
async def strict(world: ConversationHarness) -> AsyncIterator[GatewayStage]:
    """A gateway whose users are not trusted, with an agent of its own."""
    scripted = world.spec(text_answer("It is 5.")).model_dump(mode="json", exclude_unset=True)
    settings: dict[str, Any] = {"gateway_trusted": False, "agents": {"scripted": scripted}}
    async with world.worker(), open_gateway(world, **settings) as stage:
        yield stage


async def test_a_user_runs_the_agents_of_the_installation_and_no_others(
    strict: GatewayStage,
) -> None:
    listed = (await strict.anna.get("/v1/agents")).json()["items"]
    assert [item["name"] for item in listed] == ["scripted"]
    models = (await strict.anna.get("/v1/models")).json()
    assert models["items"] == [listed[0]["model"]]
    started = await strict.anna.post(
        "/v1/conversations", json={"text": "What is 2 + 3?", "agent": "scripted"}
    )
    assert started.status_code == 201, started.text
    name = started.json()["id"]
    path = f"/v1/conversations/{name}"
    assert (await strict.anna.get(f"{path}/turn")).json()["text"] == "It is 5."
    for body in (
        {"text": "?", "agent": {"model": {"name": "openai/gpt-6"}}},
        {"text": "?", "agent": {"model": listed[0]["model"], "workspace": "/etc"}},
        {"text": "?", "agent": "scripted", "model": "openai/gpt-6"},
        {"text": "?", "agent": "scripted", "images": ["http://127.0.0.1/"]},
        {"text": "?", "agent": {"model": listed[0]["model"], "tols": []}},
    ):
        refused = await strict.anna.post("/v1/conversations", json=body)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid"), body
    for changes in ({"model": "openai/gpt-6"}, {"model": {"api_base": "http://x"}}):
        refused = await strict.anna.post(f"{path}/configure", json={"changes": changes})
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid"), changes
    allowed = {"changes": {"limits": {"max_iterations": 3}, "model": {"temperature": 0.1}}}
    assert (await strict.anna.post(f"{path}/configure", json=allowed)).status_code == 200
    forked = await strict.anna.post(f"{path}/fork", json={"model": "openai/gpt-6"})
    assert forked.status_code == 422


@pytest.mark.long
async def test_a_fork_of_what_is_shared_has_an_agent_that_its_user_may_have(
    strict: GatewayStage,
) -> None:
    """Anna's own program may run any agent; Ben has no more than a gateway."""
    anna = strict.gateway.client_for("anna")
    offered = (await strict.anna.get("/v1/agents")).json()["items"][0]["model"]
    agents = {
        "/srv/annas": Agent.model_validate({"model": {"name": offered}, "workspace": "/srv/annas"}),
        None: Agent.model_validate({"model": {"name": offered}}),
    }
    for workspace, agent in agents.items():
        conversation = await anna.start("What is 2 + 3?", agent)
        await conversation.result()
        await conversation.grant("ben", "read")
        path, query = f"/v1/conversations/{conversation.id}/fork", {"owner": "anna"}
        forked = await strict.ben.post(path, json={}, params=query)
        assert forked.status_code == (422 if workspace else 201), forked.text
        if workspace:
            assert "directory" in forked.json()["detail"]
            assert workspace not in forked.text
        refused = await strict.ben.post(path, json={"model": "openai/gpt-6"}, params=query)
        assert refused.status_code == 422
    listed = (await strict.ben.get("/v1/conversations")).json()["items"]
    assert [item["owner"] for item in listed] == ["ben"]


async def test_a_fork_may_have_what_an_agent_of_the_installation_has(nobody: AgentUser) -> None:
    coder = {"tools": ["terminal"], "workspace": "/srv/code", "network": True}
    server = {"mcp": [{"name": "x", "url": "http://127.0.0.1:8233"}]}
    agents = {"coder": coder, "server": server}
    catalog = AgentCatalog(Settings(model=MODEL, agents=agents))
    for name in ("default", "coder", "server"):
        catalog.check_inherited(await catalog.choose(nobody, name, None), None)
    changes = {"workspace": "/srv/code", "network": True}
    both = (await catalog.choose(nobody, "server", None)).model_copy(update=changes)
    with pytest.raises(Invalid, match="directory of the worker"):
        catalog.check_inherited(both, None)
    own = Agent.model_validate({"model": "openai/gpt-6"})
    with pytest.raises(Invalid, match="may not be used"):
        catalog.check_inherited(own, None)
    catalog.check_inherited(own, MODEL)
