"""Serving a gateway until SIGINT or SIGTERM."""

import asyncio
import ipaddress
import logging
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from math import ceil
from time import monotonic
from typing import TYPE_CHECKING

import uvicorn
from starlette.types import ASGIApp
from temporalio.runtime import Runtime

from perdure.client.client import Client
from perdure.client.store import open_configured_store
from perdure.embedded.errors import PortTaken
from perdure.errors import Invalid
from perdure.gateway.app import create_app
from perdure.gateway.edge.http_protocol import LimitedProtocol
from perdure.gateway.edge.socket_protocol import LimitedSocketProtocol
from perdure.gateway.edge.unread import UnreadConnections
from perdure.gateway.gateway import Gateway
from perdure.operations.process import stop_signal
from perdure.operations.worker.options import DEFAULT_GRACE
from perdure.references import BadReference, import_reference
from perdure.settings.errors import SettingsError
from perdure.settings.settings import Settings
from perdure.telemetry.start import start_configured_telemetry
from perdure.temporal.connect import connect

if TYPE_CHECKING:
    from perdure.telemetry.telemetry import Telemetry

logger = logging.getLogger("perdure.gateway")

BACKLOG = 2048

MAX_UNSENT_BYTES = 128 * 1024
"""Bytes that the system keeps for a client that does not take them: megabytes otherwise, and the
gateway would not notice that nobody reads."""

TICKS_PER_SECOND = 10
"""How often uvicorn calls `on_tick`."""

MAX_HEAD_BYTES = 32 * 1024
"""Bytes of the head of a request: a token of an issuer may have some thousands."""

LOG_LEVELS = {"uvicorn.error": logging.WARNING, "botocore": logging.INFO}
"""The levels of libraries that log the addresses of sockets with their tickets, the heads of
requests with keys, and what is signed for the store with its token."""

MAX_SOCKET_QUEUE = 4
"""Messages of a socket that wait until they are read."""


def hush_libraries() -> None:
    """Keep the libraries from logging what they send and get, whatever level is asked for."""
    for name, level in LOG_LEVELS.items():
        logging.getLogger(name).setLevel(level)


async def serve(settings: Settings, host: str, port: int, grace: float = DEFAULT_GRACE) -> None:
    """Serve until SIGINT or SIGTERM; port 0 is a free one.

    Requests then have `grace` seconds to end; streams and sockets are ended at once. Temporal need
    not answer yet. Raises Invalid, SettingsError and PortTaken.
    """
    hush_libraries()
    telemetry = start_configured_telemetry(settings.metrics_address, quiet=True)
    try:
        await _serve(settings, host, port, grace, telemetry)
    finally:
        if telemetry is not None:
            await asyncio.to_thread(telemetry.close)


async def _serve(
    settings: Settings, host: str, port: int, grace: float, telemetry: "Telemetry | None"
) -> None:
    runtime = telemetry.runtime if telemetry else None
    on_entry = telemetry.metrics.record_lag if telemetry else None
    async with connect_client(settings, runtime) as client:
        if telemetry is not None:
            telemetry.metrics.count_retries(client.store)
        gateway = Gateway(client, settings, is_local=is_loopback(host), on_entry=on_entry)
        with listen(host, port) as listener:
            app = trace_requests(create_app(gateway), telemetry)
            server = GatewayServer(server_config(app, settings.gateway_max_body, grace))
            stopping = asyncio.create_task(_stop_when_asked(server, gateway))
            logger.info("gateway %d serves %s", os.getpid(), describe_address(host, listener))
            await server.serve(sockets=[listener])
            stopping.cancel()


def trace_requests(app: ASGIApp, telemetry: "Telemetry | None") -> ASGIApp:
    """Return the application with spans of its requests, if the process exports traces."""
    if telemetry is None or telemetry.sender is None:
        return app
    from perdure.gateway.edge.request_spans import RequestSpans  # only for those who export

    return RequestSpans(app, telemetry.sender)


async def _stop_when_asked(server: uvicorn.Server, gateway: Gateway) -> None:
    """Stop a server at SIGINT or SIGTERM: streams and sockets end first, by a word of their own."""
    await stop_signal().wait()
    await gateway.followers.close()
    server.should_exit = True


class GatewayServer(uvicorn.Server):
    """A server that leaves the signals to its process: uvicorn's would end it by the signal.

    It cuts off clients that do not take what they were sent.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.unread = UnreadConnections()

    async def on_tick(self, counter: int) -> bool:
        if counter % TICKS_PER_SECOND == 0:
            open_ones = [it.transport for it in self.server_state.connections if it.transport]
            self.unread.abort_late(open_ones, monotonic())
        return await super().on_tick(counter)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def connect_client(
    settings: Settings, runtime: Runtime | None = None
) -> AsyncIterator[Client]:
    """Connect to the configured store and to Temporal, which need not answer yet.

    Raises SettingsError.
    """
    make_client = load_client_class(settings.gateway_client)
    temporal = await connect(
        payload_keys=settings.payload_keys, quiet=True, lazy=True, runtime=runtime
    )
    client = make_client(
        temporal,
        open_configured_store(settings),
        settings.user,
        settings.task_queue,
        settings.search_attributes,
        settings.store,
        settings.model_rates,
        secret_keys=settings.secret_keys,
        experiments=settings.experiments,
        settings=settings,
    )
    async with client:
        yield client


def load_client_class(reference: str | None) -> type[Client]:
    """Load the class of a gateway's client, by default perdure's own. Raises SettingsError."""
    if reference is None:
        return Client
    try:
        found = import_reference(reference)
    except BadReference as error:
        raise SettingsError(f"gateway_client = {reference!r} cannot be loaded: {error}.") from error
    if not (isinstance(found, type) and issubclass(found, Client)):
        raise SettingsError(f"gateway_client = {reference!r} is no subclass of perdure.Client.")
    return found


def server_config(app: ASGIApp, max_body: int, grace: float = DEFAULT_GRACE) -> uvicorn.Config:
    """Build the configuration of the server of an application; `max_body` is in bytes.

    `grace` is in seconds.
    """
    return uvicorn.Config(
        app,
        http=LimitedProtocol,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        log_config=None,
        access_log=False,  # ours names no query, which may have a ticket
        server_header=False,
        ws=LimitedSocketProtocol,
        ws_max_size=max_body,
        ws_max_queue=MAX_SOCKET_QUEUE,
        ws_per_message_deflate=False,  # a small message must not become a large one
        timeout_graceful_shutdown=ceil(grace),
        backlog=BACKLOG,
    )


def listen(host: str, port: int) -> socket.socket:
    """Listen at an address. Raises PortTaken and Invalid."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except socket.gaierror as error:
        raise Invalid(f"{host!r} is no address of this machine.") from error
    except OSError as error:
        reason = error.strerror or error
        raise PortTaken(f"{host}:{port} cannot be had ({reason}): name another one.") from error
    # asyncio sets it only on sockets with an explicit protocol; without it the next piece of a
    # stream waits 40 ms for the acknowledgement of the one before.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with suppress(AttributeError, OSError):  # a system without it
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, MAX_UNSENT_BYTES)
    return listener


def describe_address(host: str, listener: socket.socket) -> str:
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listener.getsockname()[1]}"


def is_loopback(host: str) -> bool:
    """Tell whether only programs of this machine reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
