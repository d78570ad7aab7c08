"""Start of batches, which are then followed unless detached."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

from perdure.cli.batch.batch_file import LoadedBatches, load_batches, make_importable
from perdure.cli.batch.control import connect_batches
from perdure.cli.batch.follow import attach, note_start
from perdure.cli.environment import Environment, find_environment, open_environment
from perdure.cli.options import Format
from perdure.cli.output import note, show, show_json
from perdure.client.batch.batches import Batches
from perdure.client.batch.handle import BatchHandle
from perdure.errors import Invalid
from perdure.evaluation.messages import BatchMode as BatchMode
from perdure.operations.error_reports import EXIT_OK

StartBatches: TypeAlias = Callable[[Batches], Awaitable[list[BatchHandle]]]


async def run_file(
    file: str, changes: dict[str, Any], mode: BatchMode, detach: bool, output: Format
) -> int:
    """Run the batches of a file, and return the exit code."""
    loaded = load_batches(file, {name: value for name, value in changes.items() if value})
    return await _run(loaded, mode, detach, output)


async def rescore(name: str, file: str | None, detach: bool, output: Format) -> int:
    """Score a batch again, as it was run last or by a file, and return the exit code."""
    if file is None:
        return await run_again(name, "rescore", detach, output)
    loaded = load_batches(file, {})
    selected = tuple(batch for batch in loaded.batches if batch.name == name)
    if not selected:
        others = ", ".join(batch.name for batch in loaded.batches)
        raise Invalid(
            f"{file} is no batch {name}: it is {others}.", f"Write name = {name!r} there."
        )
    return await _run(LoadedBatches(selected, loaded.options), "rescore", detach, output)


async def _run(loaded: LoadedBatches, mode: BatchMode, detach: bool, output: Format) -> int:

    async def start(batches: Batches) -> list[BatchHandle]:
        return [await batches.run(batch, mode, loaded.options) for batch in loaded.batches]

    return await _start_and_follow(start, detach, output)


async def run_again(name: str, mode: BatchMode, detach: bool, output: Format) -> int:
    """Run a batch as it was run last, and return the exit code."""

    async def start(batches: Batches) -> list[BatchHandle]:
        return [await batches.rerun(name, mode)]

    make_importable(Path.cwd())
    return await _start_and_follow(start, detach, output)


async def _start_and_follow(start: StartBatches, detach: bool, output: Format) -> int:
    if detach:
        _print_names(await _connect_and_start(start, await find_environment()), output)
        return EXIT_OK
    async with open_environment() as environment:
        return await environment.run_with_stack(_follow(start, environment, output))


async def _follow(start: StartBatches, environment: Environment, output: Format) -> int:
    batches = await _connect_and_start(start, environment)
    for batch in batches:
        note_start(batch, environment, (await batch.load_record()).expected_attempts)
    return await attach(batches, output, environment)


async def _connect_and_start(start: StartBatches, environment: Environment) -> list[BatchHandle]:
    return await start(await connect_batches(environment.settings))


def _print_names(batches: list[BatchHandle], output: Format) -> None:
    for batch in batches:
        if output is Format.text:
            show(batch.name)
            if batch.attached:
                note("It runs already.")
        else:
            show_json({"batch": batch.name, "attached": batch.attached}, output)
