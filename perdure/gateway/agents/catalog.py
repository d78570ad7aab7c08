"""The agents that an installation offers by name, and the choice of the agent of a request."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from perdure.agent.fields import complete_condenser, find_unknown_field, merge_fields
from perdure.agent.spec import Agent, ModelSpec
from perdure.errors import Invalid
from perdure.events.validation_errors import describe_errors
from perdure.gateway.agents.policy import AgentPolicy
from perdure.settings.errors import SettingsError
from perdure.settings.settings import Settings

DEFAULT_AGENT = "default"
"""The name of the agent of requests that name none: that of the table [agent] of the settings."""


class AgentCatalog:
    """The agents of the settings, by name; `default` is there where a model is set.

    Raises SettingsError for an agent that is none.
    """

    def __init__(self, settings: Settings) -> None:
        default = (settings.agent, {"model": settings.model} if settings.model else {})
        tables = {DEFAULT_AGENT: default} | {
            name: (*default, fields) for name, fields in settings.gateway_agents.items()
        }
        self._fields = {name: merge_fields(layers) for name, layers in tables.items()}
        self.agents = {
            name: _parse(name, fields)
            for name, fields in self._fields.items()
            if name != DEFAULT_AGENT or _has_model(fields)
        }
        self.policy = AgentPolicy(settings, self.agents.values())

    def choose(self, agent: Agent | str | None, model: str | None) -> Agent:
        """Return the agent that a request names or brings, with the model that it names.

        Raises Invalid.
        """
        if isinstance(agent, Agent):
            changed = _with_model(agent, model)
            self.policy.check(changed)
            return changed
        if model is not None:
            self.policy.check_model(model)
        return self._find(agent or DEFAULT_AGENT, model)

    def check_inherited(self, agent: Agent, model: str | None) -> None:
        """Check the agent of another user's conversation, and the model that a fork names.

        What agents of the installation have, it may have too. Raises Invalid.
        """
        changed = _with_model(agent, model)
        for offered in self.agents.values():
            with suppress(Invalid):
                self.policy.check(changed, offered)
                return
        self.policy.check(changed)

    def _find(self, name: str, model: str | None) -> Agent:
        if name not in self._fields:
            names = ", ".join(self.agents) or "none"
            raise Invalid(f"There is no agent {name!r}.", f"There are: {names}.")
        if model is not None:
            return _parse(name, merge_fields((self._fields[name], {"model": model})))
        if name not in self.agents:
            raise Invalid(
                "The installation has no model for agents that name none.",
                "Name a `model`; an operator sets a default by PERDURE_MODEL.",
            )
        return self.agents[name]


def _has_model(fields: Mapping[str, Any]) -> bool:
    model = fields.get("model")
    return bool(model and (isinstance(model, str) or model.get("name")))


def _parse(name: str, fields: dict[str, Any]) -> Agent:
    """Raises SettingsError."""
    where = f"The agent {name!r} of the settings cannot be used"
    if problem := find_unknown_field(fields):
        raise SettingsError(f"{where}: {problem}")
    try:
        return Agent.model_validate(complete_condenser(fields))
    except ValidationError as error:
        raise SettingsError(f"{where}: {describe_errors(error)}.") from error


def _with_model(agent: Agent, model: str | None) -> Agent:
    """Return an agent with another model: what it says of its own does not hold of that."""
    if model is None or model == agent.model.name:
        return agent
    return agent.model_copy(update={"model": ModelSpec(name=model)})
