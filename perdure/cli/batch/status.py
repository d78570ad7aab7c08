"""`perdure batch status`: print the progress of one or all batches."""

import asyncio

from perdure.cli.batch.control import connect_batches
from perdure.cli.batch.progress_view import (
    is_complete,
    progress_fields,
    progress_line,
    progress_lines,
)
from perdure.cli.environment import find_environment, open_store
from perdure.cli.options import Format
from perdure.cli.output import note, show, show_json, show_list
from perdure.client.batch.batches import Batches
from perdure.errors import Unreachable
from perdure.evaluation.progress import Progress
from perdure.storage.errors import Altered

MAX_CONCURRENT_BATCHES = 8
"""Batches whose status is queried at a time."""


async def execute(name: str | None, output: Format) -> None:
    if name is None:
        await _print_all(output)
        return
    batches = await _open_batches()
    batch = await batches.get(name)
    progress = await batch.status()
    if output is not Format.text:
        show_json(progress_fields(progress), output)
        return
    trouble = await batch.diagnose() if progress.status == "running" else None
    trouble_text = trouble.sentence if trouble and trouble.sentence != progress.reason else None
    for line in progress_lines(progress, trouble_text):
        show(line)
    if progress.status in ("finished", "stopped") and not is_complete(progress):
        note(f"`perdure batch retry {name}` runs what is left.")


async def _print_all(output: Format) -> None:
    batches = await _open_batches()
    semaphore = asyncio.Semaphore(MAX_CONCURRENT_BATCHES)

    async def load_status(name: str) -> Progress:
        async with semaphore:
            try:
                return await batches.batch(name).status()
            except Altered as error:
                return Progress(name=name, status="stopped", reason=str(error))

    results = await asyncio.gather(*map(load_status, await batches.list_names()))
    show_list(results, progress_fields, _show_line, output)
    if not results:
        note("There are no batches yet: start one with `perdure batch run FILE`.")


def _show_line(progress: Progress) -> None:
    show("; ".join(filter(None, (progress_line(progress), progress.reason))))


async def _open_batches() -> Batches:
    """Open the user's batches, with the store alone where Temporal is unreachable."""
    settings = (await find_environment()).settings
    try:
        return await connect_batches(settings)
    except Unreachable as error:
        note(f"{error} This is what the store has:")
        return Batches(open_store(settings), settings.user, settings.task_queue)
