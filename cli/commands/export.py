"""`perdure export`: conversations in the formats of others."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, BinaryIO, TypeAlias

import typer

from cli.batch_log import write as write_batch
from cli.chosen import Batch, Tried, chosen
from cli.failures import FAILED, OK
from cli.output import Format as Printed
from cli.output import note
from cli.performing import command_app, perform
from cli.reading import must_exist
from cli.stack import log_of
from cli.writing import opened
from client.errors import Conflict, Invalid
from exports.format import Format, Part
from exports.formats import FORMATS
from exports.inspect_log import INSPECT
from exports.json_text import compact
from storage.conversations import exists
from storage.errors import Altered
from storage.exporting import about, export
from storage.log import EventLog
from storage.state import legible_state

app = command_app()

Name = StrEnum("Name", [(one.name, one.name) for one in FORMATS])  # type: ignore[misc]

Wanted: TypeAlias = str | Tried | Batch
"""What one document is made of: a conversation, by its id or its place in a batch, or a batch."""

TOLD = "; ".join(f"{one.name}: {one.told}" for one in FORMATS)


@app.command("export")
def command(
    names: Annotated[
        list[str],
        typer.Argument(metavar="ID|BATCH...", help="Conversations by id, or batches by name."),
    ],
    name: Annotated[Name, typer.Option("--format", metavar="NAME", help=f"{TOLD}.")],
    output: Annotated[
        str, typer.Option("--output", metavar="PATH", help="A file or a folder; - is stdout.")
    ] = "-",
) -> None:
    """Export conversations: messages, ATIF, OpenHands, Inspect, HTML and more.

    Only the store is needed. Of many conversations a file gets a line each, where the format is
    JSON, and a folder a file each; a batch is many, and one Inspect log. What is damaged is named,
    and the rest is exported: then the exit code is 1.
    """
    perform(_export(names, format_of(name), output), Printed.text)


def format_of(name: str) -> Format:
    return next(one for one in FORMATS if one.name == name)


async def _export(names: Sequence[str], made: Format, output: str) -> int:
    return await export_all(await chosen(names), made, output)


async def export_all(found: Sequence[str | Batch], made: Format, output: str) -> int:
    """Export conversations by id and batches; the exit code."""
    wanted = list(_wanted(found, made))
    many = len(wanted) != 1 or isinstance(wanted[0], Tried)
    folder = is_folder(made, output, 2 if many else 1)
    for one in found:
        if isinstance(one, str):
            await must_exist(await log_of(one))
        elif not one.attempts:
            note(f"No sample of {one.folder.name} has a result yet.", "yellow")
    if folder:
        whole = [await _into(Path(output), one, made) for one in wanted]
    else:
        with opened(output) as file:
            whole = [await _to(file, one, made, joined=many) for one in wanted]
    return OK if all(whole) else FAILED


def _wanted(found: Sequence[str | Batch], made: Format) -> Iterator[Wanted]:
    """One document after the other; of a batch each of its conversations, unless it is one."""
    for one in found:
        if isinstance(one, str) or made is INSPECT:
            yield one
        else:
            yield from one.attempts


def is_folder(made: Format, output: str, count: int) -> bool:
    """Whether each conversation gets a place of its own. Raises Invalid where there is none."""
    stdout = output == "-"
    if stdout and not made.suffix:
        raise Invalid(f"{made.name} is a folder.", "Say which: --output FOLDER.")
    if stdout and count > 1 and not made.joins:
        raise Invalid(
            f"Many conversations do not go into one file of {made.name}.",
            "Give a folder for a file each: --output FOLDER.",
        )
    if stdout and made.suffix == ".eval" and sys.stdout.isatty():
        raise Invalid(f"{made.name} is not for a terminal.", "Say where to: --output FILE.")
    each = not made.suffix or (count > 1 and not made.joins)
    return not stdout and (each or output.endswith("/") or Path(output).is_dir())


async def _into(folder: Path, wanted: Wanted, made: Format) -> bool:
    """Write a file, or a folder of files, that is called as the conversation or the batch is."""
    if isinstance(wanted, Batch):
        with opened(str(folder / f"{wanted.folder.name}{made.suffix}")) as file:
            return await write_batch(wanted, file)
    log = await _log(wanted)
    if log is None:
        return False
    if made.suffix:
        with opened(str(folder / f"{log.conversation_id}{made.suffix}")) as file:
            return await _written(file, log, made)
    own = folder / log.conversation_id.replace("-", "")
    if own.exists():
        raise Conflict(f"{own} is there already.", "Remove it, or give another folder.")

    def take(part: Part) -> None:
        with opened(str(folder / part.path)) as file:
            file.write(part.body)

    return await _carried(log, made, take)


async def _to(file: BinaryIO, wanted: Wanted, made: Format, joined: bool) -> bool:
    """Write to the file; as a line of it, where others are `joined`."""
    if isinstance(wanted, Batch):
        return await write_batch(wanted, file)
    log = await _log(wanted)
    return log is not None and await _written(file, log, made, joined)


async def _log(wanted: str | Tried) -> EventLog | None:
    """None where a batch has lost a conversation before anything was recorded of it."""
    if isinstance(wanted, str):
        return await log_of(wanted)
    folder = wanted.folder
    log = EventLog(folder.store, folder.user_id, wanted.conversation_id)
    if await exists(log.store, log.user_id, log.conversation_id):
        return log
    told = f"{wanted.sample!r}, epoch {wanted.epoch}, attempt {wanted.number}"
    note(f"{wanted.conversation_id} has no log and is left out: {told}.", "red")
    return None


async def _written(file: BinaryIO, log: EventLog, made: Format, joined: bool = False) -> bool:
    size, line = 0, bytearray()

    def take(part: Part) -> None:
        nonlocal size
        size += len(part.body)
        if joined:
            line.extend(part.body)
        else:
            file.write(part.body)

    whole = await _carried(log, made, take)
    if line:
        file.write(compact(json.loads(line)) + b"\n")
    if not size:
        note(f"{log.conversation_id} has nothing that goes into {made.name}.", "yellow")
    return whole


async def _carried(log: EventLog, made: Format, take: Callable[[Part], None]) -> bool:
    """Whether all of the conversation could be read; what could not is named."""
    try:
        state, _ = await legible_state(log)
        told = await about(log, state, version("perdure"))
        lost = await export(log, made, told, take)
    except Altered as error:
        note(f"{log.conversation_id}: {error}", "red")
        return False
    for slot in lost:
        note(f"{log.conversation_id}: {slot}", "red")
    return not lost
