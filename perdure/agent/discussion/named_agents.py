"""Agents of a discussion that have a name elsewhere: `agent = "NAME"` in its table."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from perdure.agent.spec import Agent

FindAgent: TypeAlias = Callable[[str], Awaitable[Agent]]
"""Finds an agent by its name. Raises Invalid."""


async def resolve_named_agents(fields: Mapping[str, Any], find: FindAgent) -> dict[str, Any]:
    """Return the table of a discussion with the agents themselves in place of their names.

    The name of the agent that all share stands beside `agents`. What is no name stays as it is.
    Raises what `find` raises.
    """
    resolved: dict[str, Any] = await _resolve(fields, find)
    if isinstance(agents := fields.get("agents"), list | tuple):
        resolved["agents"] = [await _resolve(table, find) for table in agents]
    if isinstance(moderator := fields.get("moderator"), Mapping):
        resolved["moderator"] = await _resolve(moderator, find)
    return resolved


async def _resolve(table: Any, find: FindAgent) -> Any:
    if not isinstance(table, Mapping):
        return table
    if not isinstance(name := table.get("agent"), str):
        return dict(table)
    agent = await find(name)
    return {**table, "agent": agent.model_dump(mode="json", exclude_unset=True)}
