"""The agent of a command: its options, `-c`, an agent file and the settings."""

import asyncio
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perdure.agent.extensions import McpServer
from perdure.agent.policies import Confirmation
from perdure.agent.spec import Agent, CustomCondenser, ModelSpec, SummaryCondenser
from perdure.agent.view.condense.thresholds import flatten_condenser
from perdure.cli.agent_in_force import agent_fields, describe_fields
from perdure.cli.agent_options import apply_agent_options, build_agent, parse_confirmation
from perdure.cli.agent_toml import dump_toml
from perdure.cli.declarations.agent_fields import CONDENSER_KINDS, AgentFieldOptions, AgentOptions
from perdure.client.agents.sources import AgentSources
from perdure.errors import Invalid
from perdure.settings.settings import Settings

AgentFile = Callable[[str], Path]

NO_SETTINGS = Settings(agent={}, model=None)


@pytest.fixture
def agent_file(tmp_path: Path) -> AgentFile:
    def write(text: str) -> Path:
        path = tmp_path / "agent.toml"
        path.write_text(text)
        return path

    return write


def build(settings: Settings = NO_SETTINGS, **options: Any) -> Agent:
    """Build an agent, without the sources of its fields."""
    made = AgentOptions(**{"model": "openai/m", **options})
    agent = asyncio.run(build_agent(made, AgentSources(settings)))
    return agent.model_copy(update={"sources": {}})


def test_every_option_becomes_a_field_of_the_agent(tmp_path: Path) -> None:
    agent = build(
        api_base="http://127.0.0.1:1/v1",
        temperature=0.5,
        reasoning_effort="low",
        max_output_tokens=100,
        fallbacks=["openai/n", "openai/o"],
        system_prompt="You are odd.",
        instructions="Be short.",
        network=True,
        workspace=tmp_path,
        tools="terminal,finish",
        tags=["a"],
        skills=[tmp_path],
        max_iterations=5,
        max_budget=1.5,
    )
    assert agent.model == ModelSpec(
        name="openai/m",
        api_base="http://127.0.0.1:1/v1",
        temperature=0.5,
        reasoning_effort="low",
        max_output_tokens=100,
    )
    assert [model.name for model in agent.fallbacks] == ["openai/n", "openai/o"]
    assert (agent.system_prompt, agent.instructions) == ("You are odd.", "Be short.")
    assert (agent.network, agent.tools, agent.tags) == (True, ("terminal", "finish"), ("a",))
    assert (agent.workspace, agent.skills.folders) == (str(tmp_path), (str(tmp_path),))
    assert (agent.limits.max_iterations, agent.limits.max_budget) == (5, 1.5)


def test_options_precede_assignments_the_agent_file_the_settings_and_the_defaults(
    agent_file: AgentFile,
) -> None:
    settings = Settings(agent={"limits": {"max_iterations": 1, "max_events": 1, "max_tokens": 1}})
    file = agent_file("[limits]\nmax_iterations = 2\nmax_events = 2\nmax_tokens = 2")
    config = ["limits.max_iterations=3", "limits.max_events=3", "stuck.window=7"]
    agent = build(settings, agent_file=file, config=config, max_iterations=4)
    limits = agent.limits
    assert (limits.max_iterations, limits.max_events, limits.max_tokens) == (4, 3, 2)
    assert (agent.stuck.window, agent.stuck.monologue, limits.max_budget) == (7, 3, None)


def test_the_model_of_the_settings_gives_way_to_the_file_and_the_option(
    agent_file: AgentFile,
) -> None:
    settings = Settings(model="openai/of-settings", agent={"tags": ["s"]})
    assert build(settings, model=None).model.name == "openai/of-settings"
    assert build(settings, model=None).tags == ("s",)
    file = agent_file('model = "openai/of-file"')
    assert build(settings, model=None, agent_file=file).model.name == "openai/of-file"
    assert build(settings, agent_file=file).model.name == "openai/m"
    with pytest.raises(Invalid, match="No model is set") as refused:
        build(model=None)
    assert "PERDURE_MODEL" in refused.value.hint


def test_another_model_keeps_how_to_ask_and_not_where_or_what_it_can_do(
    agent_file: AgentFile,
) -> None:
    text = '[model]\nname = "openai/own"\napi_base = "http://x"\ntemperature = 0.1\nvision = true'
    file = agent_file(text)
    model = build(agent_file=file).model
    assert model == ModelSpec(name="openai/m", temperature=0.1)
    model = build(agent_file=file, model="openai/own", temperature=0.2).model
    assert model == ModelSpec(name="openai/own", api_base="http://x", temperature=0.2, vision=True)


def test_an_assignment_is_about_the_model_that_is_named_beside_it() -> None:
    settings = Settings(model="openai/of-settings")
    config = ["model.max_input_tokens=9", "model.temperature=0.5"]
    model = ModelSpec(name="openai/m", max_input_tokens=9, temperature=0.5)
    assert build(settings, config=config).model == model
    assert build(settings, model=None, config=config).model.max_input_tokens == 9
    assert build(config=["model=openai/of-c"]).model.name == "openai/m"
    agent = Agent(model=ModelSpec(name="openai/of-batch", api_base="http://x"))
    assert apply_agent_options(AgentFieldOptions(config=config), agent, "openai/m").model == model


def test_a_condenser_needs_no_kind_to_change_the_usual_one(agent_file: AgentFile) -> None:
    agent = build(config=["condenser.max_size=50"])
    stages = flatten_condenser(agent.condenser)
    assert [each.kind for each in stages] == ["window", "browser_masking", "llm_summary"]
    assert stages[:-1] == flatten_condenser(Agent(model="m").condenser)[:-1]
    assert stages[-1] == SummaryCondenser(max_size=50, keep_first=4)
    assert build(condenser_max_size=50).condenser == agent.condenser
    with pytest.raises(Invalid, match=r"no 'condenser\.max_size'"):
        build(condenser="none", condenser_max_size=50)
    file = agent_file('[condenser]\nkind = "recent"\nmax_events = 9')
    assert build(agent_file=file, condenser="none").condenser.kind == "none"
    assert build(agent_file=file).condenser.model_dump()["max_events"] == 9
    config = ["condenser.keep_first=1", "model.temperature=1"]
    condenser = build(agent_file=file, config=config).condenser
    assert condenser.model_dump() == {"kind": "recent", "keep_first": 1, "max_events": 9}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('modle = "x"', "no 'modle': did you mean model?"),
        ("[limits]\nmax_iteration = 5", "no 'limits.max_iteration': did you mean max_iterations?"),
        ("[condenser]\nkind = 'recent'\nmax_size = 5", "no 'condenser.max_size': there are kind"),
        ("[[mcp]]\nname = 'a'\ncomand = 'x'", "no 'mcp[0].comand': did you mean command?"),
        ("[model]\nname = 'x'\ntemprature = 1", "did you mean temperature?"),
        ("fallbacks = [{ name = 'x', api_bas = 'y' }]", "'fallbacks[0].api_bas'"),
        ("[limits", "is not valid TOML"),
    ],
)
def test_an_unknown_key_of_an_agent_file_is_refused_with_the_one_that_was_meant(
    agent_file: AgentFile, text: str, message: str
) -> None:
    with pytest.raises(Invalid, match=rf"agent\.toml.*{re.escape(message)}"):
        build(agent_file=agent_file(text))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"config": ["limits.max_iteration=5"]}, "-c: An agent has no 'limits.max_iteration'"),
        ({"config": ["model.temperature=hot"]}, "model.temperature: input should be"),
        ({"config": ["limits"]}, "is no key=value"),
        ({"reasoning_effort": "huge"}, "model.reasoning_effort: input should be 'none'"),
        ({"tools": "grepp"}, "There is no tool 'grepp'"),
        ({"condenser": "forgetful"}, "There is no condenser 'forgetful'"),
        (
            {"config": ["condenser.kind=custom", "condenser.function=forgetful"]},
            "There is no condenser 'forgetful'",
        ),
        ({"config": ['analyzers=["rules", "mine"]']}, "There is no analyzer 'mine'"),
        ({"secrets": ["sk-0123"]}, "is no name of a secret"),
        ({"repository": "/etc"}, "repository: it is no URL of a server"),
        ({"repository": "https://a:b@h/c"}, "repository: it has a user or a token in it"),
        ({"branch": "main"}, "a branch or a token of no repository"),
        ({"parent": "@"}, "--parent '@' is not the whole id of a conversation"),
        ({"repository_token": "ghp_x-y"}, "is no name of a secret"),
        ({"metadata": ["team"]}, "'team' is no pair: write it as KEY=VALUE"),
        ({"skills": [Path("nowhere")]}, "nowhere is no folder of skills"),
        ({"system_prompt": "@nowhere.md"}, "nowhere.md cannot be read"),
        ({"agent_file": Path("nowhere.toml")}, "nowhere.toml cannot be read"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(options: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid, match=re.escape(message)):
        build(**options)


def test_a_start_is_described_by_options_of_its_own(agent_file: AgentFile) -> None:
    file = agent_file('[secrets]\nTICKETS = "reads tickets"\n[metadata]\nteam = "blue"')
    agent = build(
        agent_file=file,
        repository="https://example.org/a/b",
        branch="main",
        git_user_name="Anna",
        metadata=["run=7", "why=a=b"],
        app_name="shop",
        hidden=True,
    )
    assert (agent.repository, agent.branch) == ("https://example.org/a/b", "main")
    assert (agent.secrets, agent.secret_descriptions) == (
        ("TICKETS",),
        {"TICKETS": "reads tickets"},
    )
    assert agent.metadata == {"team": "blue", "run": "7", "why": "a=b"}
    assert (agent.git_user_name, agent.app_name, agent.hidden) == ("Anna", "shop", True)


def test_the_branch_of_the_same_command_line_is_that_of_its_repository() -> None:
    agent = build(repository="https://example.org/a/b", config=["branch=main"])
    assert agent.branch == "main"


def test_paths_of_an_agent_file_begin_at_its_folder(agent_file: AgentFile, tmp_path: Path) -> None:
    text = 'model = "scripted:s.json#b"\nworkspace = "work"\n[skills]\nfolders = ["skills"]'
    agent = build(model=None, agent_file=agent_file(text))
    assert agent.model.name == f"scripted:{tmp_path}/s.json#b"
    assert (agent.workspace, agent.skills.folders) == (f"{tmp_path}/work", (f"{tmp_path}/skills",))
    assert build(model="scripted:s.json").model.name == f"scripted:{Path.cwd()}/s.json"


def test_a_prompt_may_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "prompt.md"
    path.write_text("From a file.")
    assert build(system_prompt=f"@{path}").system_prompt == "From a file."
    assert build(instructions=f"@{path}").instructions == "From a file."


def test_an_agent_as_toml_is_the_same_agent_again(agent_file: AgentFile) -> None:
    agent = Agent(
        model=ModelSpec(name="openai/m", api_base="http://x", temperature=0.25),
        fallbacks=("openai/n", ModelSpec(name="openai/o", vision=True)),
        system_prompt='Say "no"\\ \x7f \x01\n\tto all. \U0001f600 é',
        instructions="'''\n\"\"\"",
        mcp=(McpServer(name="a b", command="x", env={"K.1": "V"}, env_values={"é": "=[1]"}),),
        condenser=CustomCondenser(function="m:f", options={"deep": {"list": [1, 2.5, True]}}),
        tags=("a, b", "[c]"),
    )
    text = dump_toml(agent_fields(agent))
    assert Agent.model_validate(tomllib.loads(text)) == agent
    assert build(model=None, agent_file=agent_file(text)) == agent


def test_the_fields_of_a_change_are_described_a_line_each() -> None:
    agent = Agent(model="openai/m", tags=("a", "b"))
    assert describe_fields(agent_fields(agent, {"model", "tags", "limits"})) == [
        'model.name = "openai/m"',
        "model.timeout = 600.0",
        "limits.max_iterations = 500",
        'tags = ["a", "b"]',
    ]


def test_the_agent_of_a_batch_is_changed_by_the_same_options(agent_file: AgentFile) -> None:
    agent = Agent(model="openai/m", tags=("batch",), limits={"max_events": 9})  # type: ignore[arg-type]
    assert apply_agent_options(AgentFieldOptions(), agent) == agent
    file = agent_file('model = "openai/of-file"\ninstructions = "Short."')
    options = AgentFieldOptions(agent_file=file, temperature=0.0, max_iterations=3)
    changed = apply_agent_options(options, agent)
    assert changed.model == ModelSpec(name="openai/of-file", temperature=0.0)
    assert (changed.tags, changed.instructions) == (("batch",), "Short.")
    assert (changed.limits.max_events, changed.limits.max_iterations) == (9, 3)
    named = apply_agent_options(options, agent, "openai/of-option")
    assert named.model == ModelSpec(name="openai/of-option", temperature=0.0)


def test_a_policy_may_name_the_lowest_risk_that_needs_approval() -> None:
    assert parse_confirmation("always") == Confirmation(policy="always")
    assert parse_confirmation("risky:medium") == Confirmation(policy="risky", threshold="MEDIUM")
    for text in ("sometimes", "always:LOW", "risky:SOME", ""):
        with pytest.raises(Invalid, match="never, always, risky"):
            parse_confirmation(text)


@pytest.mark.parametrize("kind", CONDENSER_KINDS)
def test_every_kind_of_condenser_can_be_chosen(kind: str) -> None:
    expected = "pipeline" if kind == "default" else kind
    assert build(condenser=kind).condenser.kind == expected


def test_a_condenser_of_ones_own_is_chosen_by_reference() -> None:
    condenser = build(condenser="my_package.condensers:forget").condenser
    assert condenser == CustomCondenser(function="my_package.condensers:forget")
