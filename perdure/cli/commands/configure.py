"""`perdure configure`: change the spec of a running conversation."""

from perdure.cli.assignments import parse_assignments
from perdure.cli.environment import connect_client
from perdure.cli.options import Format
from perdure.cli.output import confirm


async def execute(conversation_id: str, changes: list[str], output: Format) -> None:
    fields = parse_assignments(changes)
    client = await connect_client()
    recorded = await client.conversation(conversation_id).configure(fields)
    confirm(
        f"In force from seq {recorded.seq} on.",
        {"conversation_id": conversation_id, **recorded.model_dump()},
        output,
    )
