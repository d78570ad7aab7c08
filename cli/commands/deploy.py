"""`perdure deploy`: which version of the code conversations begin and go on under."""

from dataclasses import asdict
from typing import Annotated

import typer

from cli.output import Format, Output, note, show, show_json
from cli.performing import command_app, perform
from cli.stack import place
from client.connect import connect
from client.deploy import Version, versions
from client.deploy import deploy as make_current
from client.errors import Invalid

app = command_app()


@app.command()
def deploy(
    build_id: Annotated[
        str | None,
        typer.Argument(metavar="[BUILD_ID]", help="The PERDURE_BUILD_ID of the version's workers."),
    ] = None,
    ramp: Annotated[
        float | None,
        typer.Option(
            metavar="PERCENT", help="Try it with so many of the conversations.", min=0, max=100
        ),
    ] = None,
    output: Output = Format.text,
) -> None:
    """Let conversations begin and go on under a version of the workers' code.

    Those that run go on under it from their next step on. Without BUILD_ID it lists the versions.
    """
    perform(_deploy(build_id, ramp, output), output)


async def _deploy(build_id: str | None, ramp: float | None, output: Format) -> None:
    if build_id is None and ramp is not None:
        raise Invalid("Say which version --ramp is about.", "`perdure deploy` lists them.")
    queue = (await place()).settings.task_queue
    temporal = await connect()
    if build_id is not None:
        await make_current(temporal, queue, build_id, ramp)
    listed = await versions(temporal, queue)
    if output is Format.json:
        show_json([asdict(one) for one in listed], output)
    for one in listed:
        if output is Format.jsonl:
            show_json(asdict(one), output)
        elif output is Format.text:
            _show(one)
    if not listed:
        note(f"No worker on the queue {queue!r} was ever started with a PERDURE_BUILD_ID.")


def _show(one: Version) -> None:
    status = one.status if one.percent is None else f"{one.status} {one.percent:g}%"
    show(f"{one.build_id:<20}  {status:<12}  {', '.join(one.workers) or 'no worker'}")
