"""`perdure show`: print the log of a conversation."""

from typing import Any

from perdure.cli.environment import open_log
from perdure.cli.options import Format
from perdure.cli.output import note, show_json
from perdure.cli.rendering.events import show_slot, slot_fields
from perdure.cli.rendering.log_pages import read_slots, require_conversation
from perdure.events.entry import Entry
from perdure.operations.error_reports import EXIT_FAILED, EXIT_OK
from perdure.storage.log.trouble import load_trouble


async def execute(
    conversation_id: str, after: int, limit: int | None, kind: str | None, output: Format
) -> int:
    log = await open_log(conversation_id)
    await require_conversation(log)
    slots: list[dict[str, Any]] = []
    kinds: set[str] = set()
    damaged = count = 0
    async for slot in read_slots(log, after):
        if isinstance(slot, Entry):
            kinds.add(slot.event.kind)
            if kind not in (None, slot.event.kind):
                continue
        else:
            damaged += 1
        if output is Format.json:
            slots.append(slot_fields(slot))
        else:
            show_slot(slot, output)
        count += 1
        if count == limit:
            break
    if output is Format.json:
        show_json(slots, output)
    if kind is not None and not count and kinds:
        note(f"No event is a {kind}: there are {', '.join(sorted(kinds))}.")
    if trouble := await load_trouble(log, await log.end()):
        note(trouble, "yellow")
    if damaged:
        note(f"{damaged} of the objects cannot be read.", "red")
    return EXIT_FAILED if damaged else EXIT_OK
