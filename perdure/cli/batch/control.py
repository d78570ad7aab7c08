"""`perdure batch pause` and `resume`, and the connection of all batch commands."""

from typing import Literal

from perdure.cli.environment import connect_client
from perdure.cli.options import Format
from perdure.cli.output import confirm
from perdure.client.batch.batches import Batches
from perdure.settings.settings import Settings


async def execute(
    name: str, signal: Literal["pause", "resume"], confirmation: str, output: Format
) -> None:
    """Send the signal to the batch, then print `confirmation`."""
    batches = await connect_batches()
    await getattr(await batches.get(name), signal)()
    confirm(confirmation, {"batch": name}, output)


async def connect_batches(settings: Settings | None = None) -> Batches:
    """Connect to the batches of the user, in the environment of `find_environment` by default."""
    return Batches.from_client(await connect_client(settings))
