"""Named agents: what one takes from others, and what is in force of a start."""

from typing import Any

import pytest

from perdure.agent.layers import Layer
from perdure.agent.named import Definition, check_definition
from perdure.agent.resolve import NoModel, Offer, Resolved, resolve_agent, start_layer
from perdure.agent.spec import Agent
from perdure.errors import Invalid


def define(called: str, /, is_own: bool = False, **table: Any) -> Definition:
    return Definition(called, f"{called}.toml", table, lambda path: f"{called}.toml:{path}", is_own)


def offer(*definitions: Definition, user: dict[str, Any] | None = None, **all_agents: Any) -> Offer:
    by_name = {definition.name: definition for definition in definitions}
    settings = Layer("settings", user or {}, locate=lambda path: f"Your settings, {path}")
    return Offer(by_name, [Layer("[agent]", {"model": "m", **all_agents})], settings)


def resolve(name: str | None, offered: Offer, **start: Any) -> Resolved:
    return resolve_agent(name, [start_layer(start)], offered)


def test_the_order_is_start_user_named_agent_installation_defaults() -> None:
    steps = [
        ({}, "m", "[agent]"),
        ({"base": {"model": "base"}}, "base", "base.toml"),
        ({"named": {"model": "named"}}, "named", "named.toml"),
        ({"user": {"model": "user"}}, "user", "settings"),
        ({"start": {"model": "start"}}, "start", "start"),
    ]
    said: dict[str, Any] = {}
    for more, model, source in steps:
        said |= more
        base = define("base", **said.get("base", {}))
        named = define("named", extends="base", **said.get("named", {}))
        found = resolve("named", offer(base, named, user=said.get("user")), **said.get("start", {}))
        assert found.agent.model.name == model
        assert found.agent.sources["model.name"] == source
        assert found.agent.limits.max_iterations == 500
        assert "limits.max_iterations" not in found.agent.sources


def test_an_agent_takes_from_another_what_it_does_not_say() -> None:
    base = define("base", tools=["grep"], limits={"max_events": 9}, secrets=["A"])
    child = define("child", extends="base", limits={"max_budget": 1.0}, secrets=["B"])
    agent = resolve("child", offer(base, child)).agent
    assert (agent.agent, agent.tools, agent.secrets) == ("child", ("grep",), ("A", "B"))
    assert (agent.limits.max_events, agent.limits.max_budget) == (9, 1.0)


def test_a_file_says_null_by_a_list() -> None:
    base = define("base", limits={"max_budget": 5.0}, mcp=[{"name": "x", "url": "http://x"}])
    child = define("child", extends="base", null=["limits.max_budget", "mcp", "model.temperature"])
    agent = resolve("child", offer(base, child), model={"name": "n"}).agent
    assert (agent.limits.max_budget, agent.mcp) == (None, ())
    assert agent.sources["limits.max_budget"] == "child.toml"


@pytest.mark.parametrize(
    ("definitions", "sentence"),
    [
        (
            [define("a", extends="a")],
            "a.toml:extends: Agents extend one another in a circle: a",
        ),
        (
            [define("a", extends="b"), define("b", extends="c"), define("c", extends="b")],
            "c.toml:extends: Agents extend one another in a circle: a -> b -> c -> b.",
        ),
        ([define("a", extends="x")], "a.toml:extends: There is no agent 'x'."),
        ([define("b")], "There is no agent 'a'."),
        ([define("a", delegates=["x"])], "a.toml:delegates: There is no agent 'x'."),
        (
            [define("a", delegates=[{"name": "x"}])],
            "a.toml:delegates: delegates: the key 'agent'",
        ),
        ([define("a", parallel="many")], "a.toml:parallel: The agent is invalid: parallel: input"),
        (
            [define("a", extends="b"), define("b", limits={"max_events": -1})],
            "b.toml:limits.max_events: The agent is invalid: limits.max_events: input should be",
        ),
    ],
)
def test_what_cannot_be_is_told_with_its_place(
    definitions: list[Definition], sentence: str
) -> None:
    with pytest.raises(Invalid) as refused:
        resolve("a", offer(*definitions))
    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"tool": []}, "x.toml:tool: An agent has no 'tool': did you mean tools?"),
        ({"limits": {"max_cost": 1}}, "x.toml:limits.max_cost: An agent has no 'limits.max_cost'"),
        ({"null": ["limits.max_cost"]}, "x.toml:null: An agent has no 'limits.max_cost'"),
        ({"null": "limits"}, "x.toml:null: `null` is a list of fields"),
        ({"extends": ["a"]}, "x.toml:extends: `extends` is a text."),
        ({"name": "y"}, "x.toml:name: It is called 'x' here, and not 'y'."),
    ],
)
def test_a_wrong_key_is_told_with_its_place(table: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_definition(define("x", **table))
    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize("name", ["default", "", "a b", "../a", "ä", "x" * 65])
def test_not_every_text_is_a_name(name: str) -> None:
    with pytest.raises(Invalid):
        check_definition(define(name))


def test_without_a_model_one_is_asked_for() -> None:
    with pytest.raises(NoModel, match="No model is set"):
        resolve_agent("a", [], Offer({"a": define("a")}, []))
    found = resolve_agent("a", [start_layer({"model": "m"})], Offer({"a": define("a")}, []))
    assert found.agent.model.name == "m"


def test_agents_to_delegate_to_are_whole_and_delegate_no_further() -> None:
    boss = define("boss", delegates=["helper", "default"], limits={"max_budget": 9.0})
    helper = define("helper", description="Helps.", tools=["grep"], delegates=["boss"])
    agent = resolve("boss", offer(boss, helper, tags=["x"]), model="n").agent
    assert agent.tools == ("terminal", "file_editor", "think", "finish", "delegate")
    first, second = agent.delegates
    assert (first.name, first.description, first.agent.tools) == ("helper", "Helps.", ("grep",))
    assert (first.agent.model.name, first.agent.tags) == ("m", ("x",))
    assert first.agent.delegates == second.agent.delegates == ()
    assert Agent.model_validate_json(agent.model_dump_json()) == agent


def test_a_delegate_without_a_model_has_that_of_the_agent_that_delegates() -> None:
    definitions = {"boss": define("boss", delegates=["helper"]), "helper": define("helper")}
    found = resolve_agent("boss", [start_layer({"model": "n"})], Offer(definitions, []))
    assert found.agent.delegates[0].agent.model.name == "n"


def test_what_users_say_is_told_from_what_the_installation_says() -> None:
    offered = define("offered", network=True)
    own = define("own", is_own=True, extends="offered", tools=["grep"])
    assert resolve("offered", offer(offered)).is_trusted
    for found in (
        resolve("own", offer(offered, own)),
        resolve("offered", offer(offered), tools=["grep"]),
        resolve("offered", offer(offered, user={"tools": ["grep"]})),
    ):
        assert not found.is_trusted
        assert found.agent.tools == ("grep",)
        assert found.trusted is not None
        assert (found.trusted.network, len(found.trusted.tools)) == (True, 4)
