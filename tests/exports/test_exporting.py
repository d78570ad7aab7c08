"""Export of a log while it is read."""

import asyncio
import json
import threading
from typing import Any

import pytest

from perdure.agent.loop.state import State
from perdure.exports.format import ExportMetadata, Part
from perdure.exports.html import HTML
from perdure.exports.raw import RAW
from perdure.storage.keys import event_key
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.exporting import export, export_metadata
from perdure.storage.log.fork import fork
from perdure.storage.log.state import read_state_at
from tests.builders import SPEC
from tests.storage.made import log_in, origin_by, user_message
from tests.storage.memory import MemoryStore

COUNT = 1_050


async def long_log(count: int = COUNT) -> EventLog:
    """Write a log of more than a page."""
    log = log_in(MemoryStore())
    words = [user_message(f"message {number}") for number in range(count)]
    await log.append(words, base=0, origin=origin_by("one step"))
    return log


def key(log: EventLog, seq: int) -> str:
    place = f"users/{log.user_id}/conversations/{log.conversation_id}/"
    return place + event_key(log.conversation_id, seq)


async def export_lines(log: EventLog) -> tuple[list[Any], list[Any]]:
    """Return the raw export, and the unreadable slots."""
    taken: list[Part] = []
    lost = await export(log, RAW, ExportMetadata(log.conversation_id), taken.append)
    return [json.loads(part.body) for part in taken], lost


async def test_all_pages_of_a_log_are_exported_and_damaged_slots_are_named() -> None:
    log = await long_log()
    whole, lost = await export_lines(log)
    assert ([item["seq"] for item in whole], lost) == (list(range(COUNT)), [])
    await log.store.delete(key(log, 1_007))
    await log.store.replace(key(log, COUNT - 2), b"{}")
    rest, lost = await export_lines(EventLog(log.store, log.user_id, log.conversation_id))
    assert [(type(item).__name__, item.seq) for item in lost] == [
        ("Missing", 1007),
        ("Damaged", 1048),
    ]
    assert rest == [item for item in whole if item["seq"] not in (1007, 1048)]


@pytest.mark.parametrize("end", [0, 3, 1_000, 1_020, COUNT])
async def test_a_log_is_exported_up_to_the_slot_that_is_named(end: int) -> None:
    log, taken = await long_log(), list[Part]()
    lost = await export(log, RAW, ExportMetadata(log.conversation_id), taken.append, end)
    assert ([json.loads(part.body)["seq"] for part in taken], lost) == (list(range(end)), [])


async def test_an_export_ends_when_nobody_waits_for_it_any_more() -> None:
    log = await long_log(20)
    loop, begun = asyncio.get_running_loop(), asyncio.Event()

    def take(_: Part) -> None:
        loop.call_soon_threadsafe(begun.set)

    class Endless(MemoryStore):
        """Has every object, but the one that the export waits for."""

        async def read(self, key: str) -> bytes | None:
            if "_" in key and begun.is_set():
                await asyncio.Event().wait()
            return await super().read(key)

    store = Endless()
    store.objects = log.store.objects  # type: ignore[attr-defined]
    reading = EventLog(store, log.user_id, log.conversation_id)
    waiting = asyncio.create_task(export(reading, HTML, ExportMetadata(log.conversation_id), take))
    await begun.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    while any(thread.name.startswith("export") for thread in threading.enumerate()):
        await asyncio.sleep(0.01)


async def test_an_error_in_the_thread_is_raised() -> None:
    def take(_: Part) -> None:
        raise OSError("the disk is full")

    log = await long_log(1)
    with pytest.raises(OSError, match="full"):
        await export(log, RAW, ExportMetadata(log.conversation_id), take)


async def test_the_metadata_of_a_fork_has_its_first_own_seq() -> None:
    log = await long_log(5)
    child = log_in(log.store)
    await fork(log, child, await read_state_at(log, 3), [])
    metadata = await export_metadata(child, State(status="finished", title="", spec=SPEC), "1.2")
    assert (metadata.first_own_seq, metadata.title, metadata.version) == (3, None, "1.2")
    assert (metadata.status, metadata.model) == ("finished", SPEC.model.name)
