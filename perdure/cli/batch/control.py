"""Commands that steer a running batch and say how far it is."""

import asyncio

from pydantic import ValidationError

from perdure.cli.batch.progress_view import (
    closing_sentence,
    is_complete,
    progress_fields,
    progress_line,
    progress_lines,
)
from perdure.cli.declarations.batches import BatchOptions, Pause, Resume, Retune, Status
from perdure.cli.environment import connect_client, find_environment
from perdure.cli.options import Format
from perdure.cli.output import note, print_list, show, show_json, show_result
from perdure.client.batch.batches import Batches
from perdure.client.batch.handle import BatchHandle
from perdure.client.store import open_configured_store
from perdure.errors import Invalid, Unreachable
from perdure.evaluation.messages import LimitsUpdate
from perdure.evaluation.progress import Progress
from perdure.events.validation_errors import describe_errors
from perdure.settings.settings import Settings
from perdure.storage.errors import Altered

MAX_CONCURRENT_BATCHES = 8
"""Batches whose status is queried at a time."""


async def pause(options: Pause) -> None:
    await (await _find_batch(options)).pause()
    remark = f"The batch pauses. `perdure batch resume {options.name}` continues it."
    show_result({"batch": options.name}, options.output, remark=remark)


async def resume(options: Resume) -> None:
    await (await _find_batch(options)).resume()
    show_result({"batch": options.name}, options.output, remark="The batch resumes.")


async def retune(options: Retune) -> None:
    names = ("concurrency", "cost", "tokens", "time")
    changes = {name: getattr(options, name) for name in names}
    update = _parse_changes({name: value for name, value in changes.items() if value is not None})
    progress = await (await _find_batch(options)).update_limits(update)
    show_result(progress_fields(progress), options.output, *progress_lines(progress))


def _parse_changes(changes: dict[str, float]) -> LimitsUpdate:
    if not changes:
        raise Invalid(
            "Nothing is to change.", "Give one of --concurrency, --cost, --tokens and --time."
        )
    try:
        return LimitsUpdate.model_validate(changes)
    except ValidationError as error:
        raise Invalid(f"The batch cannot be changed so: {describe_errors(error)}.") from error


async def status(options: Status) -> None:
    batches = await _open_batches()
    if options.name is None:
        await _print_all(batches, options.output)
        return
    batch = await batches.get(options.name)
    progress = await batch.status()
    if options.output is not Format.text:
        show_json(progress_fields(progress), options.output)
        return
    trouble = await batch.diagnose() if progress.status == "running" else None
    trouble_text = trouble.sentence if trouble and trouble.sentence != progress.reason else None
    for line in progress_lines(progress, trouble_text):
        show(line)
    if progress.status in ("finished", "stopped") and not is_complete(progress):
        note(closing_sentence(progress))


async def _print_all(batches: Batches, output: Format) -> None:
    semaphore = asyncio.Semaphore(MAX_CONCURRENT_BATCHES)

    async def load_status(name: str) -> Progress:
        async with semaphore:
            try:
                return await batches.batch(name).status()
            except Altered as error:
                return Progress(name=name, status="stopped", reason=str(error))

    results = await asyncio.gather(*map(load_status, await batches.list_names()))
    with print_list(progress_fields, _show_line, output) as print_progress:
        for progress in results:
            print_progress(progress)
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
        return Batches(open_configured_store(settings), settings.user, settings.task_queue)


async def connect_batches(settings: Settings | None = None) -> Batches:
    """Connect to the batches of the user, in the environment of `find_environment` by default."""
    return Batches.from_client(await connect_client(settings))


async def _find_batch(options: BatchOptions) -> BatchHandle:
    return await (await connect_batches()).get(options.name)
