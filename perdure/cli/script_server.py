"""The agent and the environment of a command, and the HTTP server of a scripted model."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from perdure.agent.spec import Agent
from perdure.cli.agent_options import build_agent
from perdure.cli.environment import Environment, open_environment
from perdure.cli.model_check import check_agent_models
from perdure.cli.options import AgentOptions
from perdure.cli.output import note
from perdure.errors import Invalid
from perdure.models.budget import check_budget
from perdure.settings.settings import load_settings
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
    async with open_agent(options) as agent, open_environment() as environment:
        yield agent, environment


@asynccontextmanager
async def open_agent(options: AgentOptions) -> AsyncIterator[Agent]:
    """Yield the agent of the options, whose models were checked; serve its script meanwhile."""
    settings = load_settings()
    if options.script is None:
        agent = build_agent(options, settings)
        await check_agent_models(agent, settings)
        yield agent
        return
    scripts = read_scripts(options.script)
    name = _select_script(scripts, options.script, options.model)
    async with serve_scripts(scripts) as base_url:
        place = f"served at {base_url} while this command runs"
        note(f"The model is scripted: {options.script}, {place}.")
        served = {"name": f"openai/{name}", "api_base": base_url}
        agent = _without_cost(build_agent(options, settings, model=served))
        check_budget(agent)
        yield agent


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
