"""Carrying a log to where it is exported: read page by page while a thread makes the export."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from agent.state import State
from events.entry import Entry
from exports.format import About, Format, Part
from storage.errors import Damaged, Missing
from storage.reader import LogReader, Slot
from storage.segments import SIZE


class _Stopped(Exception):
    """Nobody waits for the export any more."""


async def export(
    log: LogReader, made: Format, about: About, take: Callable[[Part], None]
) -> list[Missing | Damaged]:
    """Hand the parts of the export to `take`, in its thread; why slots are not in it.

    A page of the log is held at a time. Raises what `take` raises, and the errors of the store.
    """
    lost: list[Missing | Damaged] = []
    stopped = threading.Event()
    reading: Future[list[Slot]] | None = None
    loop = asyncio.get_running_loop()

    def entries() -> Iterator[Entry]:
        nonlocal reading
        page: list[Slot] = []
        at = 0
        while at == 0 or len(page) == SIZE:
            reading = asyncio.run_coroutine_threadsafe(_page(log, at), loop)
            if stopped.is_set():  # the one who stops it may have looked before there was a reading
                reading.cancel()
            page = reading.result()
            at += SIZE
            for slot in page:
                if stopped.is_set():
                    raise _Stopped
                if isinstance(slot, Entry):
                    yield slot
                else:
                    lost.append(slot)

    def work() -> None:
        for part in made.parts(about, entries()):
            take(part)

    # A thread of its own: what waits for the store must not keep the store's threads from working.
    pool = ThreadPoolExecutor(1, "export")
    try:
        await loop.run_in_executor(pool, work)
    finally:
        stopped.set()
        if reading is not None:
            reading.cancel()
        pool.shutdown(wait=False)
    return lost


async def _page(log: LogReader, first: int) -> list[Slot]:
    try:
        return list(await log.read(first, SIZE))
    except (Missing, Damaged):
        return await log.readable(first, SIZE)


async def about(log: LogReader, state: State, version: str) -> About:
    """What is told of a conversation in this state by this version of perdure."""
    spec = state.spec
    return About(
        conversation_id=log.conversation_id,
        status=state.status,
        reason=state.reason,
        title=state.title or None,
        model=spec.model.name if spec else None,
        workspace=spec.workspace if spec else None,
        own=(await log.lineage())[0].first,
        version=version,
    )
