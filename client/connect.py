"""How a program finds Temporal: TEMPORAL_* and `temporal.toml`, read strictly."""

import asyncio

import temporalio.client
from temporalio.envconfig import ClientConfig
from temporalio.service import RPCError

from client.converter import CONVERTER
from client.errors import Invalid, Unreachable

LIMIT = 10.0
"""Seconds to wait for the first answer of a server."""

HINT = "Start one with `perdure dev`, or set TEMPORAL_ADDRESS."


async def connect(address: str | None = None) -> temporalio.client.Client:
    """A client of the Temporal server at `address`, else of the configured one.

    Raises Unreachable, and Invalid where the configuration cannot be read.
    """
    try:
        config = ClientConfig.load_client_connect_config(config_file_strict=True)
    except (RuntimeError, ValueError, OSError) as error:
        raise Invalid(f"The Temporal configuration cannot be read: {error}") from error
    if address is not None:
        config["target_host"] = address
    target = config.setdefault("target_host", "localhost:7233")
    try:
        async with asyncio.timeout(LIMIT):
            return await temporalio.client.Client.connect(**config, data_converter=CONVERTER)
    except TimeoutError as error:
        raise Unreachable(f"Temporal at {target} did not answer in {LIMIT:g} s.", HINT) from error
    except (RuntimeError, RPCError) as error:
        raise Unreachable(f"No Temporal server answers at {target}.", HINT) from error
