"""The agents that an installation offers by name, and the choice of the agent of a request."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from perdure.agent.layers import Fields, Layer
from perdure.agent.named import DEFAULT_AGENT, EXTENDS, Definition
from perdure.agent.resolve import (
    NoModel,
    Offer,
    Resolved,
    list_delegates,
    resolve_agent,
    start_layer,
)
from perdure.agent.spec import Agent, ModelSpec
from perdure.agent.start_fields import StartFields, apply_start
from perdure.client.agents.sources import (
    SETTINGS_SOURCE,
    find_own,
    load_definitions,
    load_installation,
    locate_in_user_settings,
)
from perdure.errors import Invalid
from perdure.events.validation_errors import describe_errors
from perdure.gateway.agents.policy import AgentPolicy, list_secrets
from perdure.settings.errors import SettingsError
from perdure.settings.settings import Settings
from perdure.storage.user_agents import UserAgents


@dataclass(frozen=True)
class AgentUser:
    """The user of a request: the agents and the secrets that are their own."""

    agents: UserAgents
    list_secrets: Callable[[], Awaitable[Collection[str]]]
    """Lists the names of the secrets that the user has handed in."""


class AgentCatalog:
    """The agents of the installation, by name; `default` is there where a model is set.

    They are those of the settings and of the `folders`. A user's own come before them. Raises
    SettingsError for an agent that is none.
    """

    def __init__(self, settings: Settings, folders: Sequence[Path] = ()) -> None:
        try:
            self.offer = load_installation(settings, folders)
            self.agents: dict[str, Agent] = {}
            for name in (DEFAULT_AGENT, *self.offer.definitions):
                with suppress(NoModel):  # a start may name one
                    self.agents[name] = resolve_agent(name, (), self.offer).agent
        except Invalid as error:
            raise SettingsError(f"An agent of the installation cannot be used: {error}") from error
        self.policy = AgentPolicy(settings, self.agents.values())

    def list_names(self) -> list[str]:
        """List the names of the installation's agents, those without a model too."""
        return list(dict.fromkeys([*self.agents, *self.offer.definitions]))

    async def choose(
        self, user: AgentUser, agent: Agent | Fields | str | None, model: str | None
    ) -> Agent:
        """Return the agent that a user's request names or brings, with the model that it names.

        Fields that extend a named agent are stronger than it. Raises Invalid, Altered,
        StoreUnavailable.
        """
        if isinstance(agent, Agent):
            changed = _with_model(agent, model)
            used = any(list_secrets(changed).values()) or changed.delegates
            own_secrets = await user.list_secrets() if used else ()
            self.policy.check(changed, own_secrets=own_secrets)
            return changed
        if model is not None:
            self.policy.check_model(model)
        fields = dict(agent) if isinstance(agent, Mapping) else {}
        name = agent if isinstance(agent, str) else fields.pop(EXTENDS, None)
        named = {"model": model} if model is not None else {}
        arguments = [start_layer(fields), start_layer(named)]
        offer = await self._load_offer(user.agents, name, arguments)
        resolved = resolve_agent(name, arguments, offer)
        await self._check(resolved, user)
        return resolved.agent

    async def check_own(self, user: AgentUser, definition: Definition) -> Agent | None:
        """Check an agent that a user wants to keep; return it, or None if it has no model yet.

        Raises Invalid, Altered, StoreUnavailable.
        """
        name, layers = definition.name, (definition.layer,)
        offer = await self._load_offer(user.agents, definition.extends, layers)
        offer = replace(offer, definitions={**offer.definitions, name: definition})
        return await self._check_without_model(name, offer, user)

    async def check_settings(self, user: AgentUser, fields: Fields) -> None:
        """Check what a user wants to say of all agents. Raises Invalid."""
        layer = start_layer(fields, SETTINGS_SOURCE)
        offer = await self._load_offer(user.agents, None, (layer,))
        await self._check_without_model(None, replace(offer, user=layer), user)

    async def _check_without_model(
        self, name: str | None, offer: Offer, user: AgentUser
    ) -> Agent | None:
        """Check an agent for which a start may have to name the model. Raises Invalid."""
        try:
            resolved = resolve_agent(name, (), offer)
        except NoModel:
            later = Layer("a model of the start", {"model": "openai/any"})
            completed = replace(offer, installation=[*offer.installation, later])
            await self._check(resolve_agent(name, (), completed), user)
            return None
        await self._check(resolved, user)
        return resolved.agent

    async def _load_offer(
        self, agents: UserAgents, name: str | None, arguments: Sequence[Layer]
    ) -> Offer:
        """Load what the installation and the user offer; another user's agents are never seen."""
        fields = await agents.load_settings()
        user = Layer(SETTINGS_SOURCE, fields, locate=locate_in_user_settings)
        layers = (*self.offer.installation, user, *arguments)
        names = [*([name] if name else []), *(it for each in layers for it in list_delegates(each))]

        async def find(wanted: str) -> Definition | None:
            return await find_own(agents, wanted) or self.offer.definitions.get(wanted)

        definitions, is_whole = await load_definitions(names, find)
        known = () if is_whole else sorted({*self.offer.definitions, *await agents.list_names()})
        return replace(self.offer, definitions=definitions, user=user, names=known)

    async def _check(self, resolved: Resolved, user: AgentUser) -> None:
        """Check what others than the installation say of an agent. Raises Invalid."""
        if not resolved.is_trusted:
            alone = resolved.agent.model_copy(update={"delegates": ()})
            used = any(list_secrets(alone).values())
            own_secrets = await user.list_secrets() if used else ()
            self.policy.check(alone, resolved.trusted, own_secrets)
        for child in resolved.delegates:
            await self._check(child, user)

    def apply(self, agent: Agent, start: StartFields, own_secrets: Collection[str] = ()) -> Agent:
        """Return the agent with what a request says over it. Raises Invalid."""
        try:
            changed = apply_start(agent, start)
        except ValidationError as error:
            raise Invalid(f"The start is invalid: {describe_errors(error)}.") from error
        self.policy.check(changed, agent, own_secrets)
        return changed

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


def _with_model(agent: Agent, model: str | None) -> Agent:
    """Return an agent with another model: what it says of its own does not hold of that."""
    if model is None or model == agent.model.name:
        return agent
    return agent.model_copy(update={"model": ModelSpec(name=model)})
