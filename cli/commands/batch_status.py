"""`perdure batch status`: how far a batch is, or all of them."""

import asyncio
from typing import Annotated

import typer

from cli.batch_given import BatchOutput
from cli.batch_shown import is_whole, line_of, lines_of, result_of
from cli.output import Format, note, show, show_json
from cli.performing import command_app, perform
from cli.stack import place
from client.batch import Batches
from client.client import Client
from client.errors import Unreachable
from client.store import store_of
from evaluation.progress import Progress
from storage.errors import Altered

app = command_app()

AT_ONCE = 8
"""Batches that are looked at side by side."""


@app.command()
def status(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The batch's name; else all of them.")
    ] = None,
    output: BatchOutput = Format.text,
) -> None:
    """Say how far a batch is, or all of them.

    Its workflow is asked where it runs; else its results in the store are counted.
    """
    perform(_status(name, output) if name else _all(output), output)


async def _status(name: str, output: Format) -> None:
    batches = await _batches()
    batch = await batches.found(name)
    progress = await batch.status()
    if output is not Format.text:
        show_json(result_of(progress), output)
        return
    trouble = await batch.trouble() if progress.status == "running" else None
    told = trouble.sentence if trouble and trouble.sentence != progress.reason else None
    for line in lines_of(progress, told):
        show(line)
    if progress.status in ("finished", "stopped") and not is_whole(progress):
        note(f"`perdure batch retry {name}` runs what is left.")


async def _all(output: Format) -> None:
    batches = await _batches()
    room = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> Progress:
        async with room:
            try:
                return await batches.batch(name).status()
            except Altered as error:
                return Progress(name=name, status="stopped", reason=str(error))

    found = await asyncio.gather(*map(one, await batches.names()))
    if output is Format.json:
        show_json([result_of(progress) for progress in found], output)
    for progress in found if output is not Format.json else ():
        if output is Format.text:
            show("; ".join(filter(None, (line_of(progress), progress.reason))))
        else:
            show_json(result_of(progress), output)
    if not found:
        note("There are no batches yet: start one with `perdure batch run FILE`.")


async def _batches() -> Batches:
    """All of them; where Temporal does not answer, as the store has them."""
    settings = (await place()).settings
    try:
        return Batches.of(await Client.connect(settings))
    except Unreachable as error:
        note(f"{error} This is what the store has:")
        return Batches(store_of(settings), settings.user, settings.task_queue)
