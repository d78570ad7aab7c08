"""`perdure dev`: everything a conversation needs, on this machine."""

import asyncio
import signal
from pathlib import Path
from typing import Annotated

import typer

from cli.failures import OK
from cli.output import Format, Output, note, show, show_json
from cli.performing import command_app, perform
from cli.stack import started
from client.walls import sandbox_of
from embedded.record import StackInfo
from settings.settings import Settings, load

app = command_app()


@app.command()
def dev(
    data: Annotated[
        Path | None, typer.Option(help="Where everything is kept; else PERDURE_DATA.")
    ] = None,
    output: Output = Format.text,
) -> None:
    """Start a Temporal dev server, an S3 store and a worker; ^C ends them.

    All ports are free ones. What is kept is found again at the next start.
    """
    perform(_dev(data, output), output)


async def _dev(data: Path | None, output: Format) -> int:
    settings = load(data=data)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, stop.set)
    note("Starting Temporal, an S3 store and a worker ...")
    async with started(settings) as stack:
        _announce(stack.info, settings, output)
        watching, asked = asyncio.ensure_future(stack.wait()), asyncio.ensure_future(stop.wait())
        await asyncio.wait({watching, asked}, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        if watching.done():
            await watching
        watching.cancel()
        note("\nEnding ...")
    note(f"Ended. Everything is kept in {settings.data}.")
    return OK


def _announce(info: StackInfo, settings: Settings, output: Format) -> None:
    if output is not Format.text:
        show_json(info.model_dump(mode="json", exclude={"environment"}), output)
        return
    show(f"Temporal UI   {info.ui}")
    if info.codec:
        show(f"codec         {info.codec}")
    show(f"Temporal      {info.temporal}")
    show(f"S3 endpoint   {info.store}")
    show(f"bucket        {info.bucket}")
    show(f"worker        pid {info.pids['worker']}")
    show(f"data          {info.folder}")
    show(f"sandbox       {sandbox_of(settings).told}")
    note('\nIn another terminal: `perdure run "TASK"`, `perdure ls`. ^C ends all of it.')
