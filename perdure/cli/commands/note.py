"""`perdure note`: set a title, tags and state of a conversation."""

from typing import Any

from perdure.cli.assignments import parse_assignment
from perdure.cli.environment import connect_client
from perdure.cli.options import Format
from perdure.cli.output import confirm
from perdure.errors import Invalid


async def execute(
    conversation_id: str,
    title: str | None,
    tags: list[str] | None,
    state: list[str] | None,
    output: Format,
) -> None:
    state_fields: dict[str, Any] | None = dict(map(parse_assignment, state)) if state else None
    if title is None and not tags and not state_fields:
        raise Invalid("There is nothing to note.", "Give --title, --tag or --state.")
    client = await connect_client()
    await client.conversation(conversation_id).note(title, tags or None, state_fields)
    confirm("Noted.", {"conversation_id": conversation_id}, output)
