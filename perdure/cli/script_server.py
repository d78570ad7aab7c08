"""The agent and the environment of a command, and the HTTP server of a scripted model."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from perdure.agent.layers import Fields
from perdure.agent.spec import Agent
from perdure.cli.agent_options import build_agent
from perdure.cli.declarations.agent_fields import AgentOptions
from perdure.cli.environment import Environment, open_environment
from perdure.cli.model_check import check_agent_models
from perdure.cli.output import note
from perdure.cli.remote_agent import find_remote_agent
from perdure.client.agents.sources import AgentSources, default_folders
from perdure.client.store import open_configured_store
from perdure.errors import Invalid
from perdure.models.budget import check_budget
from perdure.settings.settings import Settings, load_settings
from perdure.storage.open import open_store_for_reading
from perdure.storage.user_agents import UserAgents
from perdure.testing.script import Script, read_scripts
from perdure.testing.scripted_model import SCRIPTED_PREFIX
from perdure.testing.server import serve_scripts


@asynccontextmanager
async def open_agent_and_environment(
    options: AgentOptions,
) -> AsyncIterator[tuple[Agent, Environment]]:
    """Yield the agent of the options and the environment to run in; serve a script meanwhile.

    Raises Invalid where there is no model, where it cannot exist, where it lacks a key, and where
    it has no price for a budget; and ScriptError.
    """
    async with _serve_script(options) as served:
        settings = load_settings()
        local = await _build_local(options, settings, served)
        async with open_environment() as environment:
            yield await _build_whole(options, environment, local, served), environment


@asynccontextmanager
async def open_agent(options: AgentOptions, environment: Environment) -> AsyncIterator[Agent]:
    """Yield the agent of the options, whose models were checked; serve its script meanwhile."""
    async with _serve_script(options) as served:
        local = await _build_local(options, load_settings(), served)
        yield await _build_whole(options, environment, local, served)


@asynccontextmanager
async def _serve_script(options: AgentOptions) -> AsyncIterator[Fields]:
    """Serve the script of the options, and yield the fields of its agent; none without a script."""
    if options.script is None:
        yield {}
        return
    scripts = read_scripts(options.script)
    name = _select_script(scripts, options.script, options.model)
    async with serve_scripts(scripts) as base_url:
        place = f"served at {base_url} while this command runs"
        note(f"The model is scripted: {options.script}, {place}.")
        yield {"model": {"name": f"openai/{name}", "api_base": base_url}}


async def _build_local(options: AgentOptions, settings: Settings, served: Fields) -> Agent | None:
    """Build the agent without the store, before anything is started; None if its name is not here.

    Raises Invalid, and ScriptError.
    """
    sources = AgentSources(settings, default_folders(options.workspace))
    if options.agent is not None and await sources.find(options.agent) is None:
        return None
    return await _build(options, sources, served)


async def _build_whole(
    options: AgentOptions, environment: Environment, local: Agent | None, served: Fields
) -> Agent:
    """Build the agent with what the user keeps in the store or behind a gateway. Raises Invalid."""
    settings = environment.settings
    if settings.gateway is not None:
        return local or await find_remote_agent(options, settings)
    store = open_configured_store(settings, open_store_for_reading)
    try:
        agents = UserAgents(store, settings.user)
        if local is not None and not await agents.load_settings():
            return local
        sources = AgentSources(settings, default_folders(options.workspace), agents)
        return await _build(options, sources, served)
    finally:
        await store.close()


async def _build(options: AgentOptions, sources: AgentSources, served: Fields) -> Agent:
    """Build an agent, and check its models."""
    agent = await build_agent(options, sources, **served)
    if not served:
        await check_agent_models(agent, sources.settings)
        return agent
    agent = _without_cost(agent)
    check_budget(agent)
    return agent


def _without_cost(agent: Agent) -> Agent:
    """Have a served script cost nothing, unless the options say what it costs."""
    model = agent.model
    if model.input_price is None and model.output_price is None:
        model = model.model_copy(update={"input_price": 0.0, "output_price": 0.0})
    return agent.model_copy(update={"model": model})


def resolve_script_path(model: str, folder: Path = Path()) -> str:
    """Make the path of a `scripted:` model absolute: the worker has another working directory."""
    if not model.startswith(SCRIPTED_PREFIX):
        return model
    return f"{SCRIPTED_PREFIX}{(folder / model.removeprefix(SCRIPTED_PREFIX)).absolute()}"


def _select_script(scripts: dict[str, Script], path: Path, model: str | None) -> str:
    if model is None and len(scripts) == 1:
        return next(iter(scripts))
    if model not in scripts:
        raise Invalid(
            f"{path} holds the scripts {', '.join(scripts)}.", "Name one of them with --model."
        )
    return model
