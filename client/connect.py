"""How a program finds Temporal: TEMPORAL_* and `temporal.toml`, read strictly."""

import asyncio
from functools import lru_cache

import temporalio.client
from pydantic import SecretStr
from temporalio.envconfig import ClientConfig
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter
from temporalio.service import RPCError

from client.codec import encryption_of
from client.converter import converter_of
from client.errors import Invalid, Unreachable
from settings.settings import load

LIMIT = 10.0
"""Seconds to wait for the first answer of a server."""

HINT = "Start one with `perdure dev`, or set TEMPORAL_ADDRESS."


@lru_cache(maxsize=1)
def _quiet() -> Runtime:
    """Of what the SDK's core has to say, a program that prints results prints nothing else."""
    only = TelemetryFilter(core_level="ERROR", other_level="ERROR")
    return Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter=only)))


async def connect(
    address: str | None = None, payload_keys: SecretStr | None = None, *, quiet: bool = False
) -> temporalio.client.Client:
    """A client of the Temporal server at `address`, else of the configured one.

    What it gives to Temporal is encrypted where there are `payload_keys`, else with the configured
    ones where there are any. The SDK prints warnings, unless it is `quiet`. Raises Unreachable, and
    Invalid or SettingsError where the configuration cannot be used.
    """
    keys = load().payload_keys if payload_keys is None else payload_keys
    converter = converter_of(encryption_of(keys))
    try:
        config = ClientConfig.load_client_connect_config(config_file_strict=True)
    except (RuntimeError, ValueError, OSError) as error:
        raise Invalid(f"The Temporal configuration cannot be read: {error}") from error
    if address is not None:
        config["target_host"] = address
    target = config.setdefault("target_host", "localhost:7233")
    runtime = _quiet() if quiet else None
    try:
        async with asyncio.timeout(LIMIT):
            return await temporalio.client.Client.connect(
                **config, data_converter=converter, runtime=runtime
            )
    except TimeoutError as error:
        raise Unreachable(f"Temporal at {target} did not answer in {LIMIT:g} s.", HINT) from error
    except (RuntimeError, RPCError) as error:
        raise Unreachable(f"No Temporal server answers at {target}.", HINT) from error
