"""What an agent of a request may be: workers reach what the users of a gateway must not.

A worker has keys, files and a network of its own. Whoever may only send requests does not aim it
at addresses, folders, programs or code, unless the installation trusts its users.
"""

from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase

from perdure.agent.spec import Agent, ModelSpec, SummaryCondenser
from perdure.agent.view.condense.thresholds import custom_condensers, flatten_condenser
from perdure.errors import Invalid
from perdure.references import is_reference
from perdure.settings.settings import Settings

HINT = "Name an agent of the installation instead: GET /v1/agents lists them."
MODEL_HINT = "GET /v1/models lists those that may be."

LOCAL_MODELS = ("scripted:", "python:")
"""The beginnings of models that are files or code of the worker."""


class AgentPolicy:
    """The policy of an installation for the agents and messages of requests.

    `offered` are the agents of the installation, whose models may be named.
    """

    def __init__(self, settings: Settings, offered: Collection[Agent] = ()) -> None:
        self.is_trusting = settings.gateway_trusted
        self.patterns = ("*",) if self.is_trusting else settings.gateway_models
        named = [settings.model] if settings.model else []
        named += (model.name for agent in offered for model in list_models(agent))
        self.models = tuple(dict.fromkeys(named))
        self._secrets = frozenset(settings.gateway_secrets)
        self._repositories = settings.gateway_repositories

    def check(
        self, agent: Agent, before: Agent | None = None, own_secrets: Collection[str] = ()
    ) -> None:
        """Check an agent, or what it has and the one `before` had not. Raises Invalid.

        `own_secrets` are those that the user has handed in, and may use.
        """
        problems = (
            *self._find_model_problems(agent, before),
            *self._find_problems(agent, before, own_secrets),
        )
        if problems and not self.is_trusting:
            raise Invalid(*problems[0])
        earlier = {it.name: it.agent for it in before.delegates} if before else {}
        for delegate in agent.delegates:
            self.check(delegate.agent, earlier.get(delegate.name), own_secrets)

    def check_model(self, name: str) -> None:
        """Check the name of a model. Raises Invalid."""
        if not self.allows_model(name):
            raise Invalid(f"The model {name!r} may not be used here.", MODEL_HINT)

    def check_images(self, images: Iterable[str]) -> None:
        """Check the images of a message: libraries of models fetch addresses. Raises Invalid."""
        if not self.is_trusting and any(not image.startswith("data:") for image in images):
            raise Invalid(
                "An image may not be an address here.",
                "Send the image itself, as data:image/png;base64,...",
            )

    def _allows_repository(self, url: str) -> bool:
        return any(fnmatchcase(url, pattern) for pattern in self._repositories)

    def allows_model(self, name: str) -> bool:
        if self.is_trusting or name in self.models:
            return True
        is_local = name.startswith(LOCAL_MODELS)
        return not is_local and any(fnmatchcase(name, pattern) for pattern in self.patterns)

    def _find_model_problems(self, agent: Agent, before: Agent | None) -> Iterator[tuple[str, str]]:
        known = {(it.name, it.api_base) for it in list_models(before)} if before else set()
        for model in list_models(agent):
            if (model.name, model.api_base) in known:
                continue
            if not self.allows_model(model.name):
                yield f"The model {model.name!r} may not be used here.", MODEL_HINT
            if model.api_base is not None:
                yield "A model may not have an address of its own here: omit `api_base`.", HINT

    def _find_problems(
        self, agent: Agent, before: Agent | None, own_secrets: Collection[str]
    ) -> Iterator[tuple[str, str]]:
        lent = before.secrets if before else ()
        problems = (
            *self._find_field_problems(agent),
            *self._find_secret_problems(agent, own_secrets, lent),
        )
        for field, sentence in problems:
            if before is None or getattr(agent, field) != getattr(before, field):
                yield sentence, HINT
        if before is None or not self._is_privileged(before, own_secrets):
            return
        if added := [tool for tool in agent.tools if tool not in before.tools]:
            yield (
                f"The tool {added[0]!r} may not be added: the agent can do what others may not.",
                HINT,
            )

    def _is_privileged(self, agent: Agent, own_secrets: Collection[str]) -> bool:
        """Tell whether an agent may do what the agents of users may not."""
        secrets = self._find_secret_problems(agent, own_secrets)
        return any(self._find_field_problems(agent)) or any(secrets)

    def _find_field_problems(self, agent: Agent) -> Iterator[tuple[str, str]]:
        """Yield each field that is not allowed, and a sentence about it."""
        if agent.workspace is not None:
            yield "workspace", "An agent may not work in a directory of the worker here."
        if agent.code is not None:
            yield "code", "An agent may not bring code of its own here: omit `code`."
        if agent.mcp:
            yield "mcp", "An agent may not bring MCP servers of its own here: omit `mcp`."
        if agent.skills.folders:
            yield "skills", "An agent may not name folders of skills here."
        if agent.repository is not None and not self._allows_repository(agent.repository):
            allowed = ", ".join(self._repositories) or "none"
            yield "repository", f"This repository may not be cloned here: allowed are {allowed}."
        if agent.network:
            yield "network", "Commands may not have network access here: omit `network`."
        if references := list(filter(is_reference, agent.tools)):
            yield "tools", f"The tool {references[0]!r} is code, which may not be named here."
        if references := list(filter(is_reference, agent.analyzers)):
            yield "analyzers", f"The analyzer {references[0]!r} is code, which may not be named."
        if any(is_reference(it.function) for it in custom_condensers(agent.condenser)):
            yield "condenser", "A condenser may not be code of one's own here."

    def _find_secret_problems(
        self, agent: Agent, own_secrets: Collection[str], lent: Collection[str] = ()
    ) -> Iterator[tuple[str, str]]:
        """Yield each field with a secret that is not allowed.

        What is `lent` to commands may stay so; it opens no repository.
        """
        for field, names in list_secrets(agent).items():
            allowed = self._secrets.union(own_secrets, lent if field == "secrets" else ())
            if unknown := [name for name in names if name not in allowed]:
                advice = f"hand one in of your own (PUT /v1/secrets/{unknown[0]})"
                yield field, f"The secret {unknown[0]!r} may not be used here: {advice}."


def list_secrets(agent: Agent) -> dict[str, tuple[str, ...]]:
    """Return the secrets that are used if a field of an agent is as it is."""
    token = (agent.repository_token,) if agent.repository_token is not None else ()
    return {"secrets": agent.secrets, "repository_token": token, "repository": token}


def list_models(agent: Agent) -> Iterator[ModelSpec]:
    """Yield all models that an agent asks."""
    yield agent.model
    yield from agent.fallbacks
    if agent.title_model is not None:
        yield agent.title_model
    for condenser in flatten_condenser(agent.condenser):
        if isinstance(condenser, SummaryCondenser) and condenser.model is not None:
            yield condenser.model
