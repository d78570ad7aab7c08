"""The check of an agent's own condensers and analyzers, before its first turn."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from perdure.agent.code import custom_analyzers
from perdure.agent.spec import Agent
from perdure.agent.view.condense.thresholds import custom_condensers
from perdure.references import BadReference, load_named
from perdure.tools.errors import CatalogError
from perdure.tools.risk.analyzers import load_analyzer

CONDENSER_GROUP = "perdure.condensers"
"""The entry points of the planning functions of other packages."""


class ExtensionNotFound(CatalogError):
    """A condenser or an analyzer of the agent cannot be loaded."""

    code = "extension_not_found"


def check_extensions(agent: Agent) -> None:
    """Load the agent's own condensers and analyzers. Raises ExtensionNotFound."""
    for name, load in list_loaders(agent):
        try:
            load()
        except BadReference as error:
            raise ExtensionNotFound(
                f"{name[0].upper()}{name[1:]} cannot be used: {error}."
            ) from error


def list_loaders(agent: Agent) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Name the agent's own condensers and analyzers, each with the function that loads it."""
    for condenser in custom_condensers(agent.condenser):
        name = condenser.function
        yield f"the condenser {name!r}", partial(load_named, CONDENSER_GROUP, name)
    for name in custom_analyzers(agent):
        yield f"the analyzer {name!r}", partial(load_analyzer, name)
