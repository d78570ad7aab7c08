"""Export of a log: the event loop reads it page by page while a thread writes the export."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from perdure.agent.loop.state import State
from perdure.events.entry import Entry
from perdure.exports.format import ExportMetadata, Format, Part
from perdure.storage.errors import BadImage, BadSlot
from perdure.storage.log.images import has_stored_images, load_entry_images
from perdure.storage.log.readable import EntryOrError, ReadableLog


async def export(
    log: ReadableLog,
    made: Format,
    about: ExportMetadata,
    take: Callable[[Part], None],
    end: int | None = None,
) -> list[BadSlot]:
    """Pass the parts of the export to `take` as `read_in_thread` does the entries to its work."""

    def work(entries: Iterator[Entry]) -> None:
        for part in made.parts(about, entries):
            take(part)

    return await read_in_thread(log, work, end)


async def read_in_thread(
    log: ReadableLog, work: Callable[[Iterator[Entry]], None], end: int | None = None
) -> list[BadSlot]:
    """Call `work` with the entries of the log up to slot `end`, or all of them, in a thread.

    Returns the errors of other slots. One page of the log is in memory at a time. Stored images
    are in the place of the references to them, but not in the entries' bytes. Raises what `work`
    raises, and the errors of the store.
    """
    unreadable: list[BadSlot] = []
    stopped = threading.Event()
    reading: Future[list[EntryOrError]] | None = None
    loop, pages = asyncio.get_running_loop(), log.pages(end)

    def entries() -> Iterator[Entry]:
        nonlocal reading
        page: list[EntryOrError] | None = None
        while page is None or page:
            reading = asyncio.run_coroutine_threadsafe(_next(pages), loop)
            if stopped.is_set():  # `finally` may have run before this assignment
                reading.cancel()
            page = reading.result()
            for slot in page:
                if not isinstance(slot, Entry):
                    unreadable.append(slot)
                elif has_stored_images(slot):
                    yield from with_images(slot)
                else:
                    yield slot

    def with_images(entry: Entry) -> Iterator[Entry]:
        try:
            loaded = load_entry_images(log, entry)
            yield asyncio.run_coroutine_threadsafe(loaded, loop).result()
        except BadImage as error:
            unreadable.append(error)
            yield entry

    # A thread of its own: waiting for the store must not block the store's threads.
    pool = ThreadPoolExecutor(1, "export")
    try:
        await loop.run_in_executor(pool, lambda: work(entries()))
    finally:
        stopped.set()
        if reading is not None:
            reading.cancel()
        pool.shutdown(wait=False)
    return unreadable


async def _next(pages: AsyncIterator[list[EntryOrError]]) -> list[EntryOrError]:
    return await anext(pages, [])


async def export_metadata(log: ReadableLog, state: State, version: str) -> ExportMetadata:
    """Build the metadata of an export from the state, written by this version of perdure."""
    spec = state.spec
    return ExportMetadata(
        conversation_id=log.conversation_id,
        status=state.status,
        reason=state.reason,
        title=state.title or None,
        model=spec.model.name if spec else None,
        workspace=spec.workspace if spec else None,
        first_own_seq=await log.first_own_seq(),
        max_message_chars=spec.model.max_message_chars if spec else None,
        vision=spec.model.vision if spec else None,
        version=version,
    )
