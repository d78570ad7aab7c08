"""What a start says over its agent."""

from typing import Any

import pytest
from pydantic import ValidationError

from perdure.agent.spec import Agent
from perdure.agent.start_fields import StartFields, apply_start

URL = "https://example.org/a/b"

AGENT = Agent(
    "m",
    instructions="Be brief.",
    secrets={"TICKETS": "reads tickets"},
    repository=URL,
    branch="main",
    repository_token="DEPLOY_TOKEN",
    metadata={"team": "blue"},
)


def started(**fields: Any) -> Agent:
    return apply_start(AGENT, StartFields(**fields))


def test_a_start_that_says_nothing_leaves_the_agent_as_it_is() -> None:
    assert started() is AGENT


def test_instructions_follow_those_of_the_agent() -> None:
    assert started(instructions="Be kind.").instructions == "Be brief.\n\nBe kind."
    assert apply_start(Agent("m"), StartFields(instructions="Be kind.")).instructions == "Be kind."


def test_secrets_join_those_of_the_agent_by_name() -> None:
    agent = started(secrets={"OTHER": "", "TICKETS": "writes tickets"})
    assert agent.secrets == ("TICKETS", "OTHER")
    assert agent.secret_descriptions == {"TICKETS": "writes tickets"}


def test_another_repository_gets_neither_the_branch_nor_the_token_of_the_first() -> None:
    agent = started(repository="https://example.org/c/d")
    assert (agent.branch, agent.repository_token) == (None, None)
    assert started(branch="other").branch == "other"


def test_all_else_takes_the_place_of_what_the_agent_has() -> None:
    agent = started(metadata={"run": "7"}, app_name="shop", hidden=True, git_user_name="Anna")
    assert (agent.metadata, agent.app_name, agent.hidden) == ({"run": "7"}, "shop", True)
    assert agent.git_user_name == "Anna"
    assert agent.model_copy(update={"metadata": AGENT.metadata, "app_name": None}) != AGENT


def test_what_fits_no_agent_is_refused() -> None:
    with pytest.raises(ValidationError, match="of no repository"):
        apply_start(Agent("m"), StartFields(branch="main"))
