"""`perdure agent`: list, show and check named agents."""

from dataclasses import dataclass
from typing import Any

from perdure.agent.named import DEFAULT_AGENT
from perdure.agent.resolve import NoModel, resolve_agent
from perdure.agent.spec import Agent
from perdure.api.agents import ListedAgent, ListedAgents
from perdure.cli.agent_in_force import print_agent
from perdure.cli.agent_options import check_code_names
from perdure.cli.agent_sources import open_agent_sources
from perdure.cli.agent_toml import dump_toml
from perdure.cli.declarations.agents import CheckAgents, ListAgents, ShowAgent
from perdure.cli.environment import connect_gateway
from perdure.cli.options import Format
from perdure.cli.output import note, print_list, show, show_json
from perdure.client.agents.sources import AgentSources
from perdure.errors import Invalid, NotFound
from perdure.operations.error_reports import EXIT_OK, EXIT_USAGE
from perdure.settings.settings import Settings


@dataclass(frozen=True)
class Row:
    """A named agent in the list; `problem` says why it cannot be started."""

    name: str
    place: str
    model: str | None = None
    description: str = ""
    problem: str | None = None


async def list_agents(options: ListAgents) -> None:
    async with open_agent_sources() as sources:
        rows = [await _read_row(sources, name) for name in await sources.list_names()]
        rows += await _list_remote({row.name for row in rows}, sources.settings)
    with print_list(vars, _show_row, options.output) as print_row:
        for row in rows:
            print_row(row)
    if not rows:
        note("There are no named agents: write one to agents/NAME.toml.")


async def _read_row(sources: AgentSources, name: str) -> Row:
    try:
        definition = await sources.find(name)
        if definition is None:
            return Row(name, "", problem=f"{name!r} is not the name of an agent.")
        agent = await _resolve(sources, name)
    except Invalid as error:
        return Row(name, "", problem=str(error))
    model = agent.model.name if agent else None
    return Row(name, definition.place, model, definition.description)


async def _list_remote(known: set[str], settings: Settings) -> list[Row]:
    """List what the gateway that is set offers besides."""
    if settings.gateway is None:
        return []
    connection = (await connect_gateway(settings)).connection
    shown = (await connection.get("/v1/agents", ListedAgents)).items
    return [_remote_row(it) for it in shown if it.name not in {*known, DEFAULT_AGENT}]


def _remote_row(shown: ListedAgent) -> Row:
    place = "your own" if shown.own else "the gateway"
    return Row(shown.name, place, shown.model, shown.description, shown.problem)


def _show_row(row: Row) -> None:
    rest = row.problem or row.description
    show("  ".join(filter(None, (f"{row.name:<20}", row.model or "-", row.place, rest))))


async def show_agent(options: ShowAgent) -> None:
    async with open_agent_sources() as sources:
        name, settings = options.name, sources.settings
        if name == DEFAULT_AGENT or await sources.find(name) is not None:
            offer = await sources.load_offer(name, ())
            print_agent(resolve_agent(name, (), offer).agent, options.output)
            return
        names = ", ".join([DEFAULT_AGENT, *await sources.list_names()])
    if settings.gateway is not None:
        await _show_remote(name, settings, options.output)
        return
    raise NotFound(f"There is no agent {name!r}.", f"There are: {names}.")


async def _show_remote(name: str, settings: Settings, output: Format) -> None:
    connection = (await connect_gateway(settings)).connection
    listed = (await connection.get("/v1/agents", ListedAgents)).items
    shown = next((it for it in listed if it.name == name), None)
    if shown is None:
        names = ", ".join(it.name for it in listed)
        message = f"There is no agent {name!r}, neither here nor behind the gateway."
        raise NotFound(message, f"The gateway has: {names}.")
    fields: dict[str, Any] = shown.model_dump(mode="json", exclude_none=True)
    if output is Format.text:
        show(dump_toml(shown.definition or fields))
    else:
        show_json(fields, output)


async def check_agents(options: CheckAgents) -> int:
    """Check the agents one after the other; return the exit code."""
    async with open_agent_sources() as sources:
        names = options.names or await sources.list_names()
        problems = {name: await _find_problem(sources, name) for name in names}
    with print_list(dict, _show_check, options.output) as print_check:
        for name, problem in problems.items():
            print_check({"name": name, "problem": problem})
    return EXIT_USAGE if any(problems.values()) else EXIT_OK


def _show_check(checked: dict[str, str | None]) -> None:
    show(f"{checked['name']}: {checked['problem'] or 'ok'}")


async def _find_problem(sources: AgentSources, name: str) -> str | None:
    try:
        agent = await _resolve(sources, name)
        if agent is not None:
            check_code_names(agent)
    except Invalid as error:
        return str(error)
    return None


async def _resolve(sources: AgentSources, name: str) -> Agent | None:
    """Resolve a named agent; None for one whose model a start has to name. Raises Invalid."""
    try:
        return resolve_agent(name, (), await sources.load_offer(name, ())).agent
    except NoModel:
        return None
