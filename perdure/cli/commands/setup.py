"""`perdure setup`: prepare a Temporal server."""

import contextlib
import os

from perdure.cli.environment import find_environment
from perdure.cli.options import Format
from perdure.cli.output import note, show, show_json
from perdure.errors import Unreachable
from perdure.temporal.connect import connect
from perdure.temporal.register_attributes import register_attributes


async def execute(output: Format) -> None:
    if "TEMPORAL_ADDRESS" not in os.environ:
        with contextlib.suppress(Unreachable):  # no stack runs; a temporal.toml may name a server
            await find_environment()
    client = await connect()
    registered = await register_attributes(client)
    if output is not Format.text:
        show_json({"namespace": client.namespace, "registered": registered}, output)
        return
    for name in registered:
        show(name)
    result = (
        f"{len(registered)} search attributes registered"
        if registered
        else "All search attributes are there"
    )
    note(f"{result}, in the namespace {client.namespace}.")
