"""Connecting to Temporal as TEMPORAL_* and `temporal.toml` say, and its outages."""

import asyncio
import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from pydantic import SecretStr
from temporalio.client import Client
from temporalio.envconfig import ClientConfig, ClientConnectConfig
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter
from temporalio.service import GrpcCompression, RPCError

from perdure.errors import Invalid, Unreachable
from perdure.storage.exit_pause import pause_at_exit
from perdure.temporal.closed_connections import ReconnectingService
from perdure.temporal.codec import build_encryption
from perdure.temporal.converter import build_converter
from perdure.temporal.lazy_service import LazyService
from perdure.temporal.trace_context import make_trace_sender

CONNECT_TIMEOUT = 10.0
"""Seconds to wait for the first answer of a server."""

DOCTOR_HINT = "`perdure doctor` checks Temporal, the store and the disk."
START_SERVER_HINT = "Start one with `perdure dev`, or set TEMPORAL_ADDRESS."


@lru_cache(maxsize=2)
def _load_runtime(*, quiet: bool) -> Runtime:
    """Return the process's runtime, which nothing ever drops; a quiet one logs errors only.

    The interpreter drops what is left when it exits, and a dropped runtime waits for its threads.
    A thread that was about to hand over an answer, as of a call that was cancelled last, waits for
    the interpreter by then: the process would never end.
    """
    if quiet:
        only = TelemetryFilter(core_level="ERROR", other_level="ERROR")
        runtime = Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter=only)))
    else:
        runtime = Runtime.default()
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(runtime))
    pause_at_exit()
    return runtime


async def connect(
    address: str | None = None,
    payload_keys: SecretStr | None = None,
    *,
    quiet: bool = False,
    lazy: bool = False,
    runtime: Runtime | None = None,
) -> Client:
    """Connect to the Temporal server at `address`, by default to the one of TEMPORAL_*.

    With an `address`, nothing else of TEMPORAL_* and `temporal.toml` is used.
    Payloads are encrypted if `payload_keys` are given, and only then. The SDK prints warnings
    unless `quiet`, or as a given `runtime` says. A `lazy` client connects with its first request.
    Raises Unreachable, and Invalid if the configuration cannot be used.
    """
    converter = build_converter(build_encryption(payload_keys))
    config = _load_config() if address is None else ClientConnectConfig(target_host=address)
    target = config.setdefault("target_host", "localhost:7233")
    runtime = runtime or _load_runtime(quiet=quiet)
    interceptors = [make_trace_sender()]
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            client = await Client.connect(
                **config,
                data_converter=converter,
                interceptors=interceptors,
                runtime=runtime,
                lazy=lazy,
                # The SDK compresses all requests. Ours have a kilobyte or two, as what is long is
                # in the log: it costs worker and server more than the bytes are worth.
                grpc_compression=GrpcCompression.NONE,
            )
    except TimeoutError as error:
        message = f"Temporal at {target} did not answer in {CONNECT_TIMEOUT:g} s."
        raise Unreachable(message, START_SERVER_HINT) from error
    except (RuntimeError, RPCError) as error:
        raise Unreachable(f"No Temporal server answers at {target}.", START_SERVER_HINT) from error
    service = client.service_client
    return Client(
        ReconnectingService(LazyService(service) if lazy else service),
        namespace=client.namespace,
        data_converter=converter,
        interceptors=interceptors,
    )


@contextmanager
def translate_rpc_errors(predicate: str) -> Iterator[None]:
    """Raise Unreachable if Temporal refuses a request: "Temporal does not show its history: …"."""
    try:
        yield
    except RPCError as error:
        raise Unreachable(f"Temporal {predicate}: {error.message}", DOCTOR_HINT) from error


def _load_config() -> ClientConnectConfig:
    try:
        return ClientConfig.load_client_connect_config(config_file_strict=True)
    except (RuntimeError, ValueError, OSError) as error:
        raise Invalid(f"The Temporal configuration cannot be read: {error}") from error
