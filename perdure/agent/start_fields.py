"""The fields of a start over its agent, which may be one that the installation offers by name."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from perdure.agent.layers import change_sources
from perdure.agent.policies import Name, Variable
from perdure.agent.spec import Agent
from perdure.agent.surroundings import (
    Branch,
    ConversationName,
    Line,
    Metadata,
    RepositoryUrl,
    SecretDescription,
)
from perdure.events.base import Frozen

MAX_INSTRUCTIONS_CHARS = 100_000


class StartFields(Frozen):
    """Fields that a start may say over its agent; those it leaves out are the agent's."""

    instructions: Annotated[str, Field(max_length=MAX_INSTRUCTIONS_CHARS)] | None = None
    """A text behind the prompt and the instructions of the agent."""
    secrets: Annotated[dict[Variable, SecretDescription], Field(max_length=100)] = Field(
        default_factory=dict
    )
    """Names of secrets that the agent may use besides its own, each with what it is for, or ""."""
    repository: RepositoryUrl | None = None
    branch: Branch | None = None
    repository_token: Variable | None = None
    git_user_name: Line | None = None
    git_user_email: Line | None = None
    metadata: Metadata | None = None
    app_name: Name | None = None
    parent: ConversationName | None = None
    hidden: bool | None = None


def apply_start(agent: Agent, start: StartFields) -> Agent:
    """Return the agent with what the start says over it. Raises ValueError with a sentence.

    Instructions follow those of the agent, and secrets join its own by name.
    """
    given = start.model_dump(include=set(StartFields.model_fields), exclude_defaults=True)
    if not given:
        return agent
    before = agent.model_dump(mode="json", exclude_none=True)
    fields: dict[str, Any] = {**before, **given}
    if agent.sources:
        fields["sources"] = change_sources(agent.sources, before, given, "start")
    if start.instructions:
        fields["instructions"] = "\n\n".join(filter(None, (agent.instructions, start.instructions)))
    if start.secrets:
        fields |= _join_secrets(agent, start.secrets)
    if start.repository is not None:  # the agent's token and branch are of another one
        fields |= {"branch": start.branch, "repository_token": start.repository_token}
    return Agent.model_validate(fields)


def _join_secrets(agent: Agent, secrets: Mapping[str, str]) -> dict[str, Any]:
    described = {name: text for name, text in secrets.items() if text}
    return {
        "secrets": tuple(dict.fromkeys((*agent.secrets, *secrets))),
        "secret_descriptions": {**agent.secret_descriptions, **described},
    }
