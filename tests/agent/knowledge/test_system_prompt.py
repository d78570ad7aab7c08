"""The system prompt of an agent."""

import pytest

from perdure.agent.knowledge.system_prompt import build_dynamic_context, build_static_prompt
from perdure.agent.policies import Confirmation, Limits
from perdure.agent.spec import Agent, ModelSpec

MODEL = ModelSpec(name="scripted:story.json")


def asking(**fields: object) -> str:
    spec = Agent(model=MODEL, confirmation=Confirmation.model_validate(fields))
    return build_dynamic_context(spec) or ""


def test_a_spec_may_bring_its_own_prompt() -> None:
    assert (
        build_static_prompt(Agent(model=MODEL, system_prompt="You are terse.")) == "You are terse."
    )


def test_only_an_agent_that_can_finish_is_told_to() -> None:
    assert "`finish`" in build_static_prompt(Agent(model=MODEL))
    assert "`finish`" not in build_static_prompt(Agent(model=MODEL, tools=("terminal",)))


def test_the_static_part_is_the_same_in_every_conversation_of_an_agent() -> None:
    other = Agent(
        model=MODEL,
        workspace="/elsewhere",
        limits=Limits(max_budget=1.0),
        confirmation=Confirmation(policy="always"),
    )
    assert build_static_prompt(Agent(model=MODEL)) == build_static_prompt(other)


def test_the_dynamic_context_is_empty_without_confirmation() -> None:
    assert build_dynamic_context(Agent(model=MODEL)) is None


@pytest.mark.parametrize(
    ("fields", "phrase"),
    [
        ({"policy": "always"}, "Every action waits until"),
        (
            {"policy": "risky"},
            "An action of HIGH risk, or of a risk that nobody can tell, waits until",
        ),
        (
            {"policy": "risky", "threshold": "MEDIUM", "confirm_unknown": False},
            "An action of MEDIUM or a higher risk waits until",
        ),
    ],
)
def test_an_agent_knows_which_actions_wait(fields: dict[str, object], phrase: str) -> None:
    assert phrase in asking(**fields)


def test_only_an_agent_with_the_model_analyzer_is_told_to_rate_risks() -> None:
    assert "`security_risk`" in asking(policy="risky")
    assert "`security_risk`" not in asking(policy="always")
    risky = Confirmation(policy="risky")
    alone = Agent(model=MODEL, confirmation=risky, analyzers=("rules",))
    assert "`security_risk`" not in (build_dynamic_context(alone) or "")


def test_an_agent_knows_the_names_of_its_secrets() -> None:
    context = build_dynamic_context(Agent(model=MODEL, secrets=("API_TOKEN", "DB_URL"))) or ""
    assert "these secrets: API_TOKEN, DB_URL." in context
    assert "`$NAME`" in context


def test_the_dynamic_context_has_secrets_and_confirmation() -> None:
    always = Confirmation(policy="always")
    context = (
        build_dynamic_context(Agent(model=MODEL, secrets=("API_TOKEN",), confirmation=always)) or ""
    )
    assert context.index("# Secrets") < context.index("# Confirmation")


def test_instructions_stand_behind_the_agents_own_prompt_and_the_default_one() -> None:
    own = Agent(model=MODEL, system_prompt="You are terse.", instructions="Count in Roman.")
    assert build_static_prompt(own) == "You are terse.\n\nCount in Roman."
    default = build_static_prompt(Agent(model=MODEL))
    added = build_static_prompt(Agent(model=MODEL, instructions="Count in Roman."))
    assert added == f"{default.rstrip()}\n\nCount in Roman."
