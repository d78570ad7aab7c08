"""Which Temporal and which store a command uses."""

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from cli.output import note
from client.codec import encryption_of
from client.errors import Invalid, NotFound, Unreachable
from client.store import store_of
from embedded.record import StackInfo, environ
from embedded.stack import Stack, find
from embedded.temporal import Codec
from settings.settings import Settings, load
from storage.batches import BatchFolder, batches
from storage.log import EventLog

T = TypeVar("T")

NAMED = 20
"""Names of batches that are told where one is not there."""


@dataclass(frozen=True)
class Place:
    """Where conversations run: as configured, or an embedded stack, maybe this command's own."""

    settings: Settings
    info: StackInfo | None = None
    own: Stack | None = None

    async def keep_up(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`; raises ProcessFailed where a stack of our own goes down first."""
        if self.own is None:
            return await work
        working, watching = asyncio.ensure_future(work), asyncio.ensure_future(self.own.wait())
        try:
            await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                await watching
            return await working
        finally:
            working.cancel()
            watching.cancel()


async def place(**flags: Any) -> Place:
    """What is configured, else the stack that runs in the data folder.

    Raises Unreachable where there is neither, and SettingsError.
    """
    settings = load(**flags)
    if settings.store is not None:
        return Place(settings)
    info = await find(settings.data)
    if info is None:
        raise Unreachable(
            f"No store is set, and no stack runs in {settings.data}.",
            "Start one with `perdure dev`, or set PERDURE_STORE and TEMPORAL_ADDRESS.",
        )
    return _of(info, flags)


@asynccontextmanager
async def place_to_run(**flags: Any) -> AsyncIterator[Place]:
    """As `place`; where there is neither, a stack of our own for as long as it is used."""
    settings = load(**flags)
    if settings.store is not None or await find(settings.data) is not None:
        yield await place(**flags)
        return
    note("No stack is set or running: starting one for this command ...")
    async with started(settings) as stack:
        yield Place(_of(stack.info, flags).settings, stack.info, stack)


@asynccontextmanager
async def started(settings: Settings) -> AsyncIterator[Stack]:
    """A stack of our own in the data folder, ended at the end; its page shows what is encrypted."""
    async with AsyncExitStack() as ending:
        stack = await Stack.start(
            settings.data,
            say=lambda line: note(line, "yellow"),
            codec=_codec(settings, ending),
        )
        ending.push_async_callback(stack.stop)
        yield stack


def _codec(settings: Settings, ending: AsyncExitStack) -> Codec | None:
    """What decrypts payloads for the page of a stack, until the end; none where no key is set."""
    encryption = encryption_of(settings.payload_keys)
    if encryption is None:
        return None
    # A web server is slow to import, and few commands start one.
    from client.codec_server import serving

    async def serve(ui: str) -> str:
        origins = (ui, ui.replace("127.0.0.1", "localhost"))
        return await ending.enter_async_context(serving(encryption, origins=origins))

    return serve


async def log_of(conversation_id: str) -> EventLog:
    """The log of a conversation, for which nothing but the store is needed."""
    settings = (await place()).settings
    try:
        return EventLog(store_of(settings), settings.user, conversation_id)
    except ValueError as error:
        raise Invalid(str(error)) from error


async def batch_of(name: str) -> BatchFolder:
    """A batch's part of the store, and nothing else is needed. Raises NotFound and Invalid."""
    settings = (await place()).settings
    store = store_of(settings)
    try:
        folder = BatchFolder(store, settings.user, name)
    except ValueError as error:
        raise Invalid(str(error)) from error
    if await folder.kept() is None:
        names = await batches(store, settings.user)
        more = ", and others" if len(names) > NAMED else ""
        there = f"There are {', '.join(names[:NAMED])}{more}." if names else "There is none yet."
        raise NotFound(f"There is no batch {name!r}.", there)
    return folder


def _of(info: StackInfo, flags: dict[str, Any]) -> Place:
    # What a worker is given through its environment: there is one way in for keys and addresses.
    own = environ(os.environ, info.environment)
    os.environ.clear()
    os.environ.update(own)
    return Place(load(**flags), info)
