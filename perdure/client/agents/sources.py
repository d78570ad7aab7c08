"""The places in which named agents are written: files, the store, and the settings."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from perdure.agent.layers import Fields, Layer
from perdure.agent.named import DEFAULT_AGENT, Definition, check_definition, is_name
from perdure.agent.resolve import Offer, list_delegates
from perdure.client.agents.files import AGENTS_FOLDER, find_file, list_names, read_definition
from perdure.client.agents.lines import find_toml_line
from perdure.client.agents.paths import resolve_paths
from perdure.settings.settings import SETTINGS_FILE, USER_SETTINGS_FILE, Settings
from perdure.storage.user_agents import UserAgents

SETTINGS_SOURCE = "the user's settings"


def default_folders(workspace: Path | None = None) -> tuple[Path, ...]:
    """Return the folders of named agents: of the workspace, by default here, and of the user."""
    return ((workspace or Path.cwd()) / AGENTS_FOLDER, USER_SETTINGS_FILE.parent / AGENTS_FOLDER)


@dataclass(frozen=True)
class AgentSources:
    """The places of named agents: the first that has a name decides what it is.

    They are the folders `agents/`, the user's own in the store, and the tables [agents.NAME] of the
    settings. Without a store there are no own ones.
    """

    settings: Settings
    folders: Sequence[Path] = ()
    user_agents: UserAgents | None = None

    async def load_offer(self, name: str | None, arguments: Sequence[Layer]) -> Offer:
        """Load what resolving a start may need. Raises Invalid, Altered, StoreUnavailable."""
        installation = read_installation(self.settings)
        fields = {} if self.user_agents is None else await self.user_agents.load_settings()
        user = Layer(SETTINGS_SOURCE, fields, locate=locate_in_user_settings)
        layers = (*installation, user, *arguments)
        names = [*([name] if name else []), *(it for each in layers for it in list_delegates(each))]
        definitions, is_whole = await load_definitions(names, self.find)
        known = () if is_whole else await self.list_names()
        return Offer(definitions, installation, user, known)

    async def find(self, name: str) -> Definition | None:
        """Find a named agent. Raises Invalid for one that is none, Altered, StoreUnavailable."""
        if not is_name(name):  # which might lead out of a folder
            return None
        if (definition := self.find_in_folders(name)) is not None:
            return definition
        if self.user_agents is not None and (own := await find_own(self.user_agents, name)):
            return own
        return find_in_settings(self.settings, name)

    def find_in_folders(self, name: str) -> Definition | None:
        """Find a named agent in a file. Raises Invalid for one that is none."""
        for folder in self.folders:
            if (path := find_file(folder, name)) is not None:
                return read_definition(path)
        return None

    async def list_names(self) -> list[str]:
        """List all names in order. Raises StoreUnavailable."""
        names = {*self.settings.agents, *(it for each in self.folders for it in list_names(each))}
        if self.user_agents is not None:
            names |= {*await self.user_agents.list_names()}
        return sorted(names)


async def load_definitions(
    names: Iterable[str], find: Callable[[str], Awaitable[Definition | None]]
) -> tuple[dict[str, Definition], bool]:
    """Load named agents with those that they extend and delegate to.

    Return the ones that there are, and whether these are all. Raises what `find` raises.
    """
    found: dict[str, Definition | None] = {}
    wanted = list(names)
    while wanted:
        name = wanted.pop()
        if name in found or name == DEFAULT_AGENT:
            continue
        found[name] = definition = await find(name)
        if definition is not None:
            extended = [definition.extends] if definition.extends else []
            wanted += [*extended, *list_delegates(definition.layer)]
    return {name: it for name, it in found.items() if it is not None}, all(found.values())


def load_installation(settings: Settings, folders: Sequence[Path]) -> Offer:
    """Load all that an installation offers. Raises Invalid."""
    sources = AgentSources(settings, folders)
    names = {*settings.agents, *(it for each in folders for it in list_names(each))}
    found = {
        name: sources.find_in_folders(name) or find_in_settings(settings, name) for name in names
    }
    definitions = {name: it for name in sorted(names) if (it := found[name]) is not None}
    return Offer(definitions, read_installation(settings))


def read_installation(settings: Settings) -> tuple[Layer, ...]:
    """Return what the settings say of all agents."""
    model: Fields = {"model": settings.model} if settings.model else {}
    return (
        Layer(
            "[agent]", resolve_paths(settings.agent), locate=partial(_locate_in_settings, "agent")
        ),
        Layer("the setting `model`", resolve_paths(model)),
    )


def find_in_settings(settings: Settings, name: str) -> Definition | None:
    """Find a table [agents.NAME] of the settings. Raises Invalid for one that is none."""
    table = settings.agents.get(name)
    if table is None:
        return None
    locate = partial(_locate_in_settings, f"agents.{name}")
    return check_definition(Definition(name, f"[agents.{name}]", resolve_paths(table), locate))


async def find_own(agents: UserAgents, name: str) -> Definition | None:
    """Find an agent of the user's in the store. Raises Invalid, Altered, StoreUnavailable."""
    table = await agents.load(name) if is_name(name) else None
    return None if table is None else check_definition(own_definition(name, table))


def own_definition(name: str, table: Fields) -> Definition:
    """Return a user's own agent as a definition that is not checked yet."""
    place = f"the user's agent {name}"
    return Definition(name, place, table, partial(_locate_own, name), is_own=True)


def locate_in_user_settings(path: str) -> str:
    return f"Your settings, {path}"


def _locate_own(name: str, path: str) -> str:
    return f"The agent {name}, {path}"


def _locate_in_settings(table: str, path: str) -> str:
    """Tell the file and the line of a key, or the table where the environment has it."""
    for file in (SETTINGS_FILE, USER_SETTINGS_FILE):
        try:
            line = find_toml_line(file.read_text(encoding="utf-8"), f"{table}.{path}")
        except (OSError, ValueError):
            continue
        if line is not None:
            return f"{file}:{line}"
    return f"[{table}]"
