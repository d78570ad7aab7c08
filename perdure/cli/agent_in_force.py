"""The agent of a conversation as it is in force now, after all changes."""

from collections.abc import Collection
from typing import Any

from perdure.agent.spec import Agent
from perdure.cli.agent_toml import dump_toml
from perdure.cli.options import Format
from perdure.cli.output import escape_controls, show, show_json
from perdure.errors import Conflict
from perdure.operations.error_reports import EXIT_OK
from perdure.storage.log.readable import ReadableLog
from perdure.storage.log.state import read_agent, read_state

DEFAULT_SOURCE = "default"
"""The source of fields of which nobody says anything."""


async def show_agent(log: ReadableLog, output: Format) -> int:
    """Print the agent: as TOML, or as JSON."""
    print_agent(await load_agent(log), output)
    return EXIT_OK


def print_agent(agent: Agent, output: Format) -> None:
    """Print an agent as TOML, with the source of each field behind it, or as JSON."""
    fields = agent_fields(agent)
    if output is not Format.text:
        show_json(fields, output)
        return
    sources = fields.pop("sources", {})
    defaults = dict.fromkeys(fields, DEFAULT_SOURCE) if sources else {}
    show(dump_toml(fields, {**defaults, **sources}))


async def load_agent(log: ReadableLog) -> Agent:
    """Load the agent in force. Raises Conflict before a worker has taken the conversation up."""
    agent = await read_agent(log, await read_state(log))
    if agent is None:
        raise Conflict(
            f"The conversation {log.conversation_id} has no agent yet: no worker has taken it up.",
            "Ask again later.",
        )
    return agent


def agent_fields(agent: Agent, names: Collection[str] | None = None) -> dict[str, Any]:
    """Return the fields that have a value, all of them or those of these names."""
    fields = agent.model_dump(mode="json", exclude_none=True)
    return {name: fields[name] for name in fields if names is None or name in names}


def describe_fields(fields: dict[str, Any]) -> list[str]:
    """Write each field on a line, with the keys of tables before their values."""
    flat = {
        (f"{name}.{key}" if key else name): value
        for name, table in fields.items()
        for key, value in (table if isinstance(table, dict) else {"": table}).items()
    }
    return [escape_controls(line) for line in dump_toml(flat).splitlines() if line]
