"""What an agent is told first."""

import pytest

from agent.prompt import dynamic_context, static_prompt
from agent.spec import Confirmation, Limits, ModelSpec, Spec

MODEL = ModelSpec(name="scripted:story.json")


def asking(**fields: object) -> str:
    spec = Spec(model=MODEL, confirmation=Confirmation.model_validate(fields))
    return dynamic_context(spec) or ""


def test_a_spec_may_bring_its_own_prompt() -> None:
    assert static_prompt(Spec(model=MODEL, system_prompt="You are terse.")) == "You are terse."


def test_only_an_agent_that_can_finish_is_told_to() -> None:
    assert "`finish`" in static_prompt(Spec(model=MODEL))
    assert "`finish`" not in static_prompt(Spec(model=MODEL, tools=("terminal",)))


def test_the_static_part_is_the_same_in_every_conversation_of_an_agent() -> None:
    other = Spec(
        model=MODEL,
        workspace="/elsewhere",
        limits=Limits(max_budget=1.0),
        confirmation=Confirmation(policy="always"),
    )
    assert static_prompt(Spec(model=MODEL)) == static_prompt(other)


def test_nothing_more_is_said_where_no_action_waits() -> None:
    assert dynamic_context(Spec(model=MODEL)) is None


@pytest.mark.parametrize(
    ("fields", "said"),
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
def test_an_agent_knows_which_actions_wait(fields: dict[str, object], said: str) -> None:
    assert said in asking(**fields)


def test_only_an_agent_whose_word_counts_is_asked_for_risks() -> None:
    assert "`security_risk`" in asking(policy="risky")
    assert "`security_risk`" not in asking(policy="always")
    risky = Confirmation(policy="risky")
    alone = Spec(model=MODEL, confirmation=risky, analyzers=("rules",))
    assert "`security_risk`" not in (dynamic_context(alone) or "")


def test_an_agent_knows_the_names_of_its_secrets() -> None:
    told = dynamic_context(Spec(model=MODEL, secrets=("API_TOKEN", "DB_URL"))) or ""
    assert "these secrets: API_TOKEN, DB_URL." in told
    assert "`$NAME`" in told


def test_secrets_and_confirmation_are_told_of_side_by_side() -> None:
    always = Confirmation(policy="always")
    told = dynamic_context(Spec(model=MODEL, secrets=("API_TOKEN",), confirmation=always)) or ""
    assert told.index("# Secrets") < told.index("# Confirmation")
