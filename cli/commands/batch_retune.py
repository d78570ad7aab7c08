"""`perdure batch retune`."""

from typing import Annotated

import typer
from pydantic import ValidationError

from cli.batch_given import BatchOutput, Name
from cli.batch_shown import lines_of, result_of
from cli.output import Format, show, show_json
from cli.performing import command_app, perform
from cli.stack import place
from client.batch import Batches
from client.client import Client
from client.errors import Invalid
from evaluation.faults import faults
from evaluation.running import Retune

app = command_app()


@app.command()
def retune(
    name: Name,
    concurrency: Annotated[
        int | None, typer.Option(help="Samples at a time.", metavar="N", min=1, max=10_000)
    ] = None,
    cost: Annotated[
        float | None, typer.Option(help="US dollars for the whole batch.", metavar="$")
    ] = None,
    tokens: Annotated[
        int | None, typer.Option(help="Tokens both ways, for the whole batch.", metavar="N", min=1)
    ] = None,
    time: Annotated[
        float | None, typer.Option(help="Seconds that it may be at work.", metavar="S")
    ] = None,
    output: BatchOutput = Format.text,
) -> None:
    """Change the concurrency or the limits of a batch while it runs.

    A batch that paused at a limit goes on where the limit is raised.
    """
    changes = {"concurrency": concurrency, "cost": cost, "tokens": tokens, "time": time}
    perform(_retune(name, changes, output), output)


async def _retune(name: str, changes: dict[str, float | None], output: Format) -> None:
    asked = _checked(changes)
    batches = Batches.of(await Client.connect((await place()).settings))
    progress = await (await batches.found(name)).retune(asked)
    if output is not Format.text:
        show_json(result_of(progress), output)
        return
    for line in lines_of(progress):
        show(line)


def _checked(changes: dict[str, float | None]) -> Retune:
    given = {name: value for name, value in changes.items() if value is not None}
    if not given:
        raise Invalid(
            "Nothing is to change.", "Give one of --concurrency, --cost, --tokens and --time."
        )
    try:
        return Retune.model_validate(given)
    except ValidationError as error:
        raise Invalid(f"The batch cannot be changed so: {faults(error)}.") from error
