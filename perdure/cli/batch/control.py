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
from perdure.cli.environment import connect_gateway, connect_servers, find_environment
from perdure.cli.options import Format
from perdure.cli.output import note, print_list, show, show_json, show_result
from perdure.client.batch.protocol import BatchClient, BatchControl
from perdure.client.ids import split_owner
from perdure.client.store import open_configured_store
from perdure.errors import Invalid, NotFound, Unreachable
from perdure.evaluation.messages import LimitsUpdate
from perdure.evaluation.progress import Progress
from perdure.events.validation_errors import describe_errors
from perdure.settings.settings import Settings
from perdure.storage.errors import Altered
from perdure.storage.shared import MAX_LISTED

MAX_CONCURRENT_BATCHES = 8
"""Batches whose status is queried at a time."""


async def pause(options: Pause) -> None:
    await (await find_batch(options)).pause()
    remark = f"The batch pauses. `perdure batch resume {options.name}` continues it."
    show_result({"batch": options.name}, options.output, remark=remark)


async def resume(options: Resume) -> None:
    await (await find_batch(options)).resume()
    show_result({"batch": options.name}, options.output, remark="The batch resumes.")


async def retune(options: Retune) -> None:
    names = ("concurrency", "cost", "tokens", "time")
    changes = {name: getattr(options, name) for name in names}
    update = _parse_changes({name: value for name, value in changes.items() if value is not None})
    progress = await (await find_batch(options)).update_limits(update)
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
    if options.shared and options.name is not None:
        raise Invalid("--shared lists batches: name none.", "`perdure batch status --shared`.")
    if options.name is None:
        await _print_all(batches, options)
        return
    batch = await batches.get(*split_owner(options.name))
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


async def _print_all(batches: BatchClient, options: Status) -> None:
    if options.shared:
        names = [f"{it.owner}/{it.id}" for it in await batches.list_shared(MAX_LISTED)]
    else:
        names = await batches.list_names()
    semaphore = asyncio.Semaphore(MAX_CONCURRENT_BATCHES)

    async def load_status(name: str) -> Progress:
        async with semaphore:
            try:
                progress = await batches.batch(*split_owner(name)).status()
                return progress.model_copy(update={"name": name})
            except (Altered, NotFound) as error:
                return Progress(name=name, status="stopped", reason=str(error))

    results = await asyncio.gather(*map(load_status, names))
    with print_list(progress_fields, _show_line, options.output) as print_progress:
        for progress in results:
            print_progress(progress)
    if not results and options.shared:
        note("No other user shares a batch with you.")
    elif not results:
        note("There are no batches yet: start one with `perdure batch run FILE`.")


def _show_line(progress: Progress) -> None:
    show("; ".join(filter(None, (progress_line(progress), progress.reason))))


async def _open_batches() -> BatchClient:
    """Open the user's batches, with the store alone where Temporal is unreachable."""
    settings = (await find_environment()).settings
    try:
        return await connect_batches(settings)
    except Unreachable as error:
        if settings.gateway is not None:
            raise
        from perdure.client.batch.batches import Batches  # slow

        note(f"{error} This is what the store has:")
        return Batches(open_configured_store(settings), settings.user, settings.task_queue)


async def connect_batches(settings: Settings | None = None) -> BatchClient:
    """Connect to the batches of the user, in the environment of `find_environment` by default."""
    settings = settings or (await find_environment()).settings
    if settings.gateway is not None:
        from perdure.client.batch.http_batches import HttpBatches

        return HttpBatches(await connect_gateway(settings))
    from perdure.client.batch.batches import Batches  # slow

    return Batches.from_client(await connect_servers(settings))


async def find_batch(options: BatchOptions) -> BatchControl:
    """Find the batch that a command names. Raises NotFound."""
    return await (await connect_batches()).get(*split_owner(options.name))
