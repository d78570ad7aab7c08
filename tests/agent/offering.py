"""Tools as far as an answer needs them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent.answer import Parse, Touches
from events.actions import Action, MCPToolAction
from events.content import ToolDefinition
from tests.builders import tool


@dataclass(frozen=True)
class Offering:
    definition: ToolDefinition
    parse: Parse
    touches: Touches = lambda _: None


def offered(
    parse: Callable[[str, dict[str, Any]], Action], *names: str, read_only: bool = False
) -> Mapping[str, Offering]:
    """Tools that all read their arguments alike; `parse` is given the name first."""
    return {
        name: Offering(tool(name, read_only), lambda arguments, name=name: parse(name, arguments))  # type: ignore[misc]
        for name in names
    }


def taking_anything(_: str, arguments: dict[str, Any]) -> Action:
    return MCPToolAction(data=arguments)
