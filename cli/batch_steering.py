"""Telling a batch that runs what to do."""

from collections.abc import Awaitable, Callable

from cli.output import Format, note, show_json
from cli.stack import place
from client.batch import Batches
from client.batch_handle import BatchHandle
from client.client import Client


async def steer(
    name: str, tell: Callable[[BatchHandle], Awaitable[None]], said: str, output: Format
) -> None:
    batches = Batches.of(await Client.connect((await place()).settings))
    await tell(await batches.found(name))
    if output is Format.text:
        note(said)
    else:
        show_json({"batch": name}, output)
