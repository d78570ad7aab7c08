"""`perdure setup`: what a server of yours must be told once."""

import contextlib
import os

from cli.output import Format, Output, note, show, show_json
from cli.performing import command_app, perform
from cli.stack import place
from client.connect import connect
from client.errors import Unreachable
from client.search import register

app = command_app()


@app.callback()
def setup() -> None:
    """Tell Temporal once what perdure needs of it."""


@app.command()
def temporal(output: Output = Format.text) -> None:
    """Register the search attributes, by which conversations are found in Temporal.

    Doing it again does no harm. Without them everything else works.
    """
    perform(_temporal(output), output)


async def _temporal(output: Format) -> None:
    if "TEMPORAL_ADDRESS" not in os.environ:
        with contextlib.suppress(Unreachable):  # no stack runs; a temporal.toml may name a server
            await place()
    client = await connect()
    new = await register(client)
    if output is not Format.text:
        show_json({"namespace": client.namespace, "registered": new}, output)
        return
    for name in new:
        show(name)
    done = f"{len(new)} search attributes registered" if new else "All search attributes are there"
    note(f"{done}, in the namespace {client.namespace}.")
