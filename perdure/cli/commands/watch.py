"""`perdure watch`: print the log as it grows."""

import contextlib
from collections.abc import AsyncIterator

from perdure.agent.loop.evolve import fold
from perdure.cli.environment import connect_client, open_log
from perdure.cli.follow import note_trouble, run_beside
from perdure.cli.options import Format
from perdure.cli.output import show_json
from perdure.cli.rendering.events import show_slot, slot_fields
from perdure.cli.rendering.live_region import show_live_steps
from perdure.cli.rendering.log_pages import follow_slots, require_conversation
from perdure.client.live import RunningStep
from perdure.client.turn import is_turn_over
from perdure.errors import Invalid, Unreachable
from perdure.events.entry import Entry
from perdure.events.projection import summarize
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.reader import EntryOrError
from perdure.storage.log.state import read_state


async def execute(conversation_id: str, after: int, ends: bool, output: Format) -> None:
    if output is Format.json and not ends:
        raise Invalid("A watch has no end, and JSON needs one.", "Use -o jsonl or --until-rest.")
    log = await open_log(conversation_id)
    await require_conversation(log)
    slots: AsyncIterator[EntryOrError] = (
        _follow_until_rest(log, after) if ends else follow_slots(log, after)
    )
    if output is Format.json:
        show_json([slot_fields(slot) async for slot in slots], output)
        return
    async with (
        show_live_steps(_live_steps(conversation_id), output) as finish_step,
        run_beside(_note_trouble(conversation_id)),
    ):
        async for slot in slots:
            if isinstance(slot, Entry):
                finish_step(slot)
            show_slot(slot, output)


async def _note_trouble(conversation_id: str) -> None:
    with contextlib.suppress(Unreachable, Invalid):  # the store alone is enough to watch
        client = await connect_client()
        await note_trouble(client.conversation(conversation_id))


async def _live_steps(conversation_id: str) -> AsyncIterator[tuple[RunningStep, ...]]:
    """Yield the running steps, as long as Temporal answers."""
    with contextlib.suppress(Unreachable, Invalid):
        client = await connect_client()
        async for steps in client.conversation(conversation_id).watch_running_steps():
            yield steps


async def _follow_until_rest(log: EventLog, after: int) -> AsyncIterator[Entry]:
    """Yield every entry after `after` up to the end of the turn. Raises Damaged and Missing."""
    state = await read_state(log)

    async def rests() -> bool:
        return is_turn_over(state)

    async for entry in log.tail(after, is_idle=rests):
        state = fold(state, [summarize(entry)])
        yield entry
