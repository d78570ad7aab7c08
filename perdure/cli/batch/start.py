"""Start of batches, which are then followed unless detached."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from perdure.cli.batch.batch_file import LoadedBatches, load_batches, make_importable
from perdure.cli.batch.control import connect_batches
from perdure.cli.batch.follow import attach, note_start
from perdure.cli.declarations.batches import Rescore, Retry, Run
from perdure.cli.environment import Environment, open_environment
from perdure.cli.output import show_result
from perdure.client.batch.batches import Batches
from perdure.client.batch.handle import BatchHandle
from perdure.errors import Invalid
from perdure.evaluation.messages import BatchMode
from perdure.operations.error_reports import EXIT_OK

StartOptions: TypeAlias = Run | Retry | Rescore

StartBatches: TypeAlias = Callable[[Batches], Awaitable[list[BatchHandle]]]


async def run(options: Run) -> int:
    mode = options.mode
    names = ("name", "models", "concurrency", "limit", "ids", "epochs")
    changes = {name: value for name in names if (value := getattr(options, name))}
    return await _run(load_batches(options.file, changes), mode, options)


async def retry(options: Retry) -> int:
    return await _run_again("failed", options)


async def rescore(options: Rescore) -> int:
    """Score a batch again, as it was run last or by a file."""
    name, file = options.name, options.file
    if file is None:
        return await _run_again("rescore", options)
    loaded = load_batches(file, {})
    selected = tuple(batch for batch in loaded.batches if batch.name == name)
    if not selected:
        others = ", ".join(batch.name for batch in loaded.batches)
        raise Invalid(
            f"{file} is no batch {name}: it is {others}.", f"Write name = {name!r} there."
        )
    return await _run(LoadedBatches(selected, loaded.options), "rescore", options)


async def _run(loaded: LoadedBatches, mode: BatchMode, options: StartOptions) -> int:

    async def start(batches: Batches) -> list[BatchHandle]:
        return [await batches.run(batch, mode, loaded.options) for batch in loaded.batches]

    return await _start_and_follow(start, options)


async def _run_again(mode: BatchMode, options: Retry | Rescore) -> int:
    """Run a batch as it was run last."""

    async def start(batches: Batches) -> list[BatchHandle]:
        return [await batches.rerun(options.name, mode)]

    make_importable(Path.cwd())
    return await _start_and_follow(start, options)


async def _start_and_follow(start: StartBatches, options: StartOptions) -> int:
    if not options.detach:
        async with open_environment() as environment:
            return await environment.run_with_stack(_follow(start, environment, options))
    for batch in await start(await connect_batches()):
        fields = {"batch": batch.name, "attached": batch.attached}
        remark = "It runs already." if batch.attached else ""
        show_result(fields, options.output, batch.name, remark=remark)
    return EXIT_OK


async def _follow(start: StartBatches, environment: Environment, options: StartOptions) -> int:
    batches = await start(await connect_batches(environment.settings))
    for batch in batches:
        note_start(batch, environment, (await batch.load_record()).expected_attempts)
    return await attach(batches, options.output, environment)
