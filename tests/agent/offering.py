"""Fake tools with as much as parsing a call needs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from perdure.agent.calls.answer import FindResources, ParseArguments
from perdure.events.actions import Action, MCPToolAction
from perdure.events.content import ToolDefinition
from tests.builders import tool


@dataclass(frozen=True)
class FakeTool:
    definition: ToolDefinition
    parse: ParseArguments
    resources: FindResources = lambda _: None


def fake_tools(
    parse: Callable[[str, dict[str, Any]], Action], *names: str, read_only: bool = False
) -> Mapping[str, FakeTool]:
    """Make tools that share one parser; `parse` gets the tool's name first."""
    return {
        name: FakeTool(tool(name, read_only), lambda arguments, name=name: parse(name, arguments))  # type: ignore[misc]
        for name in names
    }


def accept_arguments(_: str, arguments: dict[str, Any]) -> Action:
    return MCPToolAction(data=arguments)
