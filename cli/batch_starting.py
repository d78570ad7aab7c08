"""Starting batches, and following them unless they are to be left alone."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from cli.batch_following import attach, introduce
from cli.batch_given import Given, importable
from cli.failures import OK
from cli.output import Format, note, show, show_json
from cli.stack import Place, place, place_to_run
from client.batch import Batches
from client.batch_handle import BatchHandle
from client.client import Client
from evaluation.running import Mode

Start: TypeAlias = Callable[[Batches], Awaitable[list[BatchHandle]]]


async def run(asked: Given, mode: Mode, detach: bool, output: Format) -> int:
    """Run what stands in a file; the exit code."""

    async def start(batches: Batches) -> list[BatchHandle]:
        return [await batches.run(one, mode, asked.options) for one in asked.batches]

    return await _carry_out(start, detach, output)


async def again(name: str, mode: Mode, detach: bool, output: Format) -> int:
    """Run a batch as it was run last; the exit code."""

    async def start(batches: Batches) -> list[BatchHandle]:
        return [await batches.again(name, mode)]

    importable(Path.cwd())
    return await _carry_out(start, detach, output)


async def _carry_out(start: Start, detach: bool, output: Format) -> int:
    if detach:
        _announce(await _started(start, await place()), output)
        return OK
    async with place_to_run() as where:
        return await where.keep_up(_follow(start, where, output))


async def _follow(start: Start, where: Place, output: Format) -> int:
    batches = await _started(start, where)
    for one in batches:
        introduce(one, where, (await one.kept()).expected)
    return await attach(batches, output, where)


async def _started(start: Start, where: Place) -> list[BatchHandle]:
    return await start(Batches.of(await Client.connect(where.settings)))


def _announce(batches: list[BatchHandle], output: Format) -> None:
    for one in batches:
        if output is Format.text:
            show(one.name)
            if one.attached:
                note("It runs already.")
        else:
            show_json({"batch": one.name, "attached": one.attached}, output)
