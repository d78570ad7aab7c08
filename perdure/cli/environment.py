"""The Temporal server and the store that a command uses."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from perdure.cli.imports import quick_imports
from perdure.cli.output import note
from perdure.client.client import Client
from perdure.client.discovery import NoServers
from perdure.client.http.client import HttpClient
from perdure.client.ids import split_owner
from perdure.client.store import open_configured_store
from perdure.embedded.discovery import await_stack
from perdure.embedded.record import StackInfo, merge_environment
from perdure.errors import Invalid, NotFound
from perdure.settings.settings import Settings, load_settings
from perdure.storage.open import open_store_for_reading
from perdure.storage.store import Store

if TYPE_CHECKING:
    from perdure.cli.catalogs.catalog import Catalog
    from perdure.client.protocol import ConversationClient, ConversationHandle
    from perdure.embedded.stack import Stack
    from perdure.embedded.temporal import CodecStarter
    from perdure.storage.batches import BatchRecord
    from perdure.storage.log.event_log import EventLog
    from perdure.storage.log.readable import ReadableLog
    from perdure.storage.readable_batch import ReadableBatch

# Temporal's client and web servers are slow to import, and commands that only read the store need
# neither: functions import them when they are called.

T = TypeVar("T")

_GATEWAYS: list[HttpClient] = []
"""The clients of gateways that this command has connected."""

MAX_LISTED_BATCHES = 20
"""Batches named in the error that another does not exist."""


@dataclass(frozen=True)
class Environment:
    """Settings that name servers: a gateway, or a Temporal and a store, maybe a stack's own."""

    settings: Settings
    stack_info: StackInfo | None = None
    own_stack: Stack | None = None
    """The stack that this command started for itself."""

    async def run_with_stack(self, work: Coroutine[Any, Any, T]) -> T:
        """Await `work`. Raises ProcessFailed if this command's own stack goes down first."""
        if self.own_stack is None:
            return await work
        task = asyncio.ensure_future(work)
        stack_watch = asyncio.ensure_future(self.own_stack.wait())
        try:
            await asyncio.wait({task, stack_watch}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                await stack_watch
            return await task
        finally:
            task.cancel()
            stack_watch.cancel()


async def find_environment(**flags: Any) -> Environment:
    """Return the configured environment, else the stack that runs in the data folder.

    Raises Unreachable where there is neither, and SettingsError.
    """
    settings = load_settings(**flags)
    environment = await _find(settings)
    if environment is None:
        raise NoServers(settings.data)
    return environment


async def find_servers(**flags: Any) -> Environment:
    """Return the environment of Temporal and a store, whether a gateway is set or not.

    Raises as `find_environment`.
    """
    settings = load_settings(**flags).model_copy(update={"gateway": None})
    environment = await _find(settings)
    if environment is None:
        raise NoServers(settings.data)
    return environment


@asynccontextmanager
async def open_environment(**flags: Any) -> AsyncIterator[Environment]:
    """Yield the environment of `find_environment`, or start a stack for as long as it is used."""
    settings = load_settings(**flags)
    environment = await _find(settings)
    if environment is not None:
        if environment.stack_info and not environment.stack_info.worker_ready:
            note("The worker of the stack is starting: it will take this up in some seconds.")
        yield environment
        return
    note("No stack is set or running: starting one for this command ...")
    async with start_stack(settings) as stack:
        yield replace(_use_stack(settings, stack.info), own_stack=stack)


async def _find(settings: Settings) -> Environment | None:
    if settings.store is not None or settings.gateway is not None:
        return Environment(settings)
    info = await await_stack(settings.data, note)
    return None if info is None else _use_stack(settings, info)


@asynccontextmanager
async def start_stack(
    settings: Settings,
    ports: Mapping[str, int] | None = None,
    processes: int = 1,
    gateway: bool = False,
) -> AsyncIterator[Stack]:
    """Run a stack in the data folder, also with a gateway; Temporal's UI can decrypt payloads."""
    with quick_imports():
        from perdure.embedded.stack import Stack
        from perdure.embedded.worker_command import GATEWAY_COMMAND, worker_command

    async with AsyncExitStack() as exit_stack:
        stack = await Stack.start(
            settings.data,
            worker=worker_command(processes),
            gateway=GATEWAY_COMMAND if gateway else None,
            report=lambda line: note(line, "yellow"),
            codec=_make_codec(settings, exit_stack),
            ports=ports,
            progress=note,
        )
        exit_stack.push_async_callback(stack.stop)
        yield stack


def _make_codec(settings: Settings, exit_stack: AsyncExitStack) -> CodecStarter | None:
    """Make the codec server of a stack's web page; None where no payload key is set."""
    from perdure.temporal.codec import build_encryption

    encryption = build_encryption(settings.payload_keys)
    if encryption is None:
        return None
    from perdure.operations.codec_server import serve_codec

    async def serve(ui: str) -> str:
        origins = (ui, ui.replace("127.0.0.1", "localhost"))
        return await exit_stack.enter_async_context(serve_codec(encryption, origins=origins))

    return serve


async def connect_client(settings: Settings | None = None) -> ConversationClient:
    """Connect to the gateway that is set, else to Temporal and the store.

    Those of `find_environment` are used by default.
    """
    settings = settings or (await find_environment()).settings
    if settings.gateway is not None:
        return await connect_gateway(settings)
    return await connect_servers(settings)


async def connect_servers(settings: Settings | None = None) -> Client:
    """Connect to Temporal and the store, those of `find_servers` by default."""
    return await Client.connect(settings or (await find_servers()).settings)


async def connect_gateway(settings: Settings) -> HttpClient:
    """Connect to the gateway of the settings; `close_gateways` closes the connection."""
    if not _GATEWAYS:
        _GATEWAYS.append(await HttpClient.connect(settings))
    return _GATEWAYS[0]


async def close_gateways() -> None:
    """Close the connections that this command has opened to a gateway."""
    while _GATEWAYS:
        await _GATEWAYS.pop().close()


async def open_catalog(shared: bool = False) -> Catalog:
    """Open the catalog of the user, or of what others share, without Temporal.

    Raises Invalid, Unreachable.
    """
    settings = (await find_environment()).settings
    if settings.gateway is not None:
        from perdure.cli.catalogs.gateway import GatewayCatalog

        return GatewayCatalog(await connect_gateway(settings), shared)
    from perdure.cli.catalogs.store import StoreCatalog

    store = open_configured_store(settings, open_store_for_reading)
    return StoreCatalog(store, settings.user, shared)


def open_conversation(client: ConversationClient, name: str) -> ConversationHandle:
    """Return the conversation of an id, of another user for `USER/ID`. Raises Invalid."""
    conversation_id, owner = split_owner(name)
    return client.conversation(conversation_id, owner)


async def open_store_alone() -> tuple[Store, str]:
    """Open the store for reading, without Temporal; return it and the user. Raises Invalid."""
    settings = (await find_servers()).settings
    return open_configured_store(settings, open_store_for_reading), settings.user


async def open_log(conversation_id: str) -> ReadableLog:
    """Open the log of a conversation, of another user for `USER/ID`, without Temporal.

    Raises Invalid.
    """
    settings = (await find_environment()).settings
    if settings.gateway is not None:
        client = await connect_gateway(settings)
        return client.conversation(*split_owner(conversation_id)).log
    return await open_stored_log(conversation_id)


async def open_stored_log(conversation_id: str) -> EventLog:
    """Open the log of a conversation in the store itself. Raises Invalid."""
    from perdure.client.conversation_log import open_conversation_log

    store, user = await open_store_alone()
    return open_conversation_log(store, user, *split_owner(conversation_id))


async def open_batch(name: str) -> tuple[ReadableBatch, BatchRecord]:
    """Open a batch, of another user for `USER/NAME`, to read it, without Temporal.

    Raises NotFound and Invalid.
    """
    settings = (await find_environment()).settings
    if settings.gateway is not None:
        from perdure.client.batch.http_batches import HttpBatches

        batch = await HttpBatches(await connect_gateway(settings)).get(*split_owner(name))
        return batch.folder, await batch.load_record()
    from perdure.storage.batches import BatchFolder, list_batches
    from perdure.storage.granted_store import open_granted
    from perdure.storage.grants import Shareable

    store, user = await open_store_alone()
    own_name, owner = split_owner(name)
    try:
        of = Shareable("batch", owner or user, own_name)
        folder = BatchFolder(open_granted(store, of, user), of.owner, own_name)
    except ValueError as error:
        raise Invalid(str(error)) from error
    if record := await folder.load():
        return folder, record
    names = await list_batches(store, user)
    listed = ", ".join(names[:MAX_LISTED_BATCHES])
    more = ", and others" if len(names) > MAX_LISTED_BATCHES else ""
    hint = f"There are {listed}{more}." if names else "There is none yet."
    raise NotFound(f"There is no batch {name!r}.", hint)


def _use_stack(settings: Settings, info: StackInfo) -> Environment:
    # boto3, Temporal's client and a worker find their keys and addresses in the environment.
    variables = merge_environment(os.environ, info.environment)
    os.environ.clear()
    os.environ.update(variables)
    code = settings.code or Path.cwd()
    changes = {"store": variables["PERDURE_STORE"], "data": info.folder, "code": code}
    return Environment(settings.model_copy(update=changes), info)
