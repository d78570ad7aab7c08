"""`perdure export`: export conversations in common formats."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO, TypeAlias
from uuid import UUID

from perdure.cli.batch.export import AttemptRef, BatchSelection, select_batch, write_batch_log
from perdure.cli.declarations import batches, operations
from perdure.cli.environment import open_log
from perdure.cli.output import note, open_output
from perdure.cli.rendering.log_pages import require_conversation
from perdure.client.ids import split_owner
from perdure.errors import Conflict, Invalid, NotFound
from perdure.exports import formats
from perdure.exports.format import Format, Part
from perdure.exports.inspect_log import INSPECT
from perdure.exports.json_text import compact_json
from perdure.operations.error_reports import EXIT_FAILED, EXIT_OK
from perdure.references import BadReference, is_reference
from perdure.storage.errors import Altered
from perdure.storage.log.exporting import export as export_log
from perdure.storage.log.exporting import export_metadata
from perdure.storage.log.readable import ReadableLog
from perdure.storage.log.state import read_state_until_damage

ExportItem: TypeAlias = str | AttemptRef | BatchSelection
"""The source of one document: a conversation's id, an attempt of a batch, or a whole batch."""


def find_format(name: str) -> Format:
    """Find a format. Raises Invalid."""
    names = formats.list_format_names()
    if name not in names and not is_reference(name):
        raise Invalid(f"There is no format {name!r}.", f"Use {', '.join(names)}.")
    try:
        return formats.find_format(name)
    except BadReference as error:
        raise Invalid(f"The format {name!r} cannot be used: {error}.") from error


async def export(options: operations.Export) -> int:
    selection = [await _select(name) for name in dict.fromkeys(options.names)]
    return await _export_all(selection, find_format(options.format), options.path)


async def export_batch(options: batches.Export) -> int:
    format = find_format(options.format)
    if options.every and format is INSPECT:
        raise Invalid(
            "An Inspect log has one attempt for each epoch of a sample.",
            "Leave out --all-attempts: the errors of earlier attempts are in it.",
        )
    selection = await select_batch(options.name, options.every)
    return await _export_all([selection], format, options.path)


async def _export_all(
    selection: Sequence[str | BatchSelection], format: Format, output: str
) -> int:
    """Export conversations by id and batches, and return the exit code."""
    items = list(_list_items(selection, format))
    is_many = len(items) != 1 or isinstance(items[0], AttemptRef)
    folder = is_folder(format, output, 2 if is_many else 1)
    for item in selection:
        if isinstance(item, str):
            await require_conversation(await open_log(item))
        elif not item.attempts:
            note(f"No sample of {item.folder.name} has a result yet.", "yellow")
    if folder:
        successes = [await _write_to_folder(Path(output), item, format) for item in items]
    else:
        with open_output(output) as file:
            successes = [await _write_to_file(file, item, format, joined=is_many) for item in items]
    return EXIT_OK if all(successes) else EXIT_FAILED


async def _select(name: str) -> str | BatchSelection:
    """Resolve a name: an id stays as it is, and a batch's name becomes its selection.

    Raises NotFound, and Invalid for what can be the name of neither.
    """
    try:
        UUID(split_owner(name)[0])
    except ValueError:
        return await _select_batch(name)
    await open_log(name)
    return name


async def _select_batch(name: str) -> BatchSelection:
    try:
        return await select_batch(name)
    except NotFound as error:
        raise NotFound(f"There is no conversation and no batch {name!r}.", error.hint) from error
    except Invalid as error:
        raise Invalid(
            f"{name!r} is neither a conversation id, which is a UUID, nor a batch's name."
        ) from error


def _list_items(selection: Sequence[str | BatchSelection], format: Format) -> Iterator[ExportItem]:
    """Yield the source of each document: a batch is one in Inspect, else one for each attempt."""
    for item in selection:
        if isinstance(item, str) or format is INSPECT:
            yield item
        else:
            yield from item.attempts


def is_folder(format: Format, output: str, count: int) -> bool:
    """Tell whether `output` is a folder with a file for each conversation.

    Raises Invalid where the format cannot go to stdout.
    """
    stdout = output == "-"
    if stdout and not format.suffix:
        raise Invalid(f"{format.name} is a folder.", "Say which: --output FOLDER.")
    if stdout and count > 1 and not format.is_one_line:
        raise Invalid(
            f"Many conversations do not go into one file of {format.name}.",
            "Give a folder for a file each: --output FOLDER.",
        )
    if stdout and format.suffix == ".eval" and sys.stdout.isatty():
        raise Invalid(f"{format.name} is not for a terminal.", "Say where to: --output FILE.")
    separate = not format.suffix or (count > 1 and not format.is_one_line)
    return not stdout and (separate or output.endswith("/") or Path(output).is_dir())


async def _write_to_folder(folder: Path, item: ExportItem, format: Format) -> bool:
    """Write a file, or a folder of files, named after the conversation or the batch."""
    if isinstance(item, BatchSelection):
        with open_output(str(folder / f"{item.folder.name}{format.suffix}")) as file:
            return await write_batch_log(item, file)
    log = await _find_log(item)
    if log is None:
        return False
    if format.suffix:
        with open_output(str(folder / f"{log.conversation_id}{format.suffix}")) as file:
            return await write_log(file, log, format)
    folder_of_conversation = folder / log.conversation_id.replace("-", "")
    if folder_of_conversation.exists():
        raise Conflict(
            f"{folder_of_conversation} is there already.", "Remove it, or give another folder."
        )

    def take(part: Part) -> None:
        with open_output(str(folder / part.path)) as file:
            file.write(part.body)

    return await _export_log(log, format, take)


async def _write_to_file(file: BinaryIO, item: ExportItem, format: Format, joined: bool) -> bool:
    """Write to the file, as one line where several conversations are `joined`."""
    if isinstance(item, BatchSelection):
        return await write_batch_log(item, file)
    log = await _find_log(item)
    return log is not None and await write_log(file, log, format, joined)


async def _find_log(item: str | AttemptRef) -> ReadableLog | None:
    """Open the log; None where a batch's conversation failed before its first event."""
    if isinstance(item, str):
        return await open_log(item)
    folder = item.folder
    log = folder.open_log(item.conversation_id)
    if await log.exists():
        return log
    attempt = f"{item.sample!r}, epoch {item.epoch}, attempt {item.number}"
    note(f"{item.conversation_id} has no log and is left out: {attempt}.", "red")
    return None


async def write_log(file: BinaryIO, log: ReadableLog, format: Format, joined: bool = False) -> bool:
    size, line = 0, bytearray()

    def take(part: Part) -> None:
        nonlocal size
        size += len(part.body)
        if joined:
            line.extend(part.body)
        else:
            file.write(part.body)

    complete = await _export_log(log, format, take)
    if line:
        file.write(compact_json(json.loads(line)) + b"\n")
    if not size:
        note(f"{log.conversation_id} has nothing that goes into {format.name}.", "yellow")
    return complete


async def _export_log(log: ReadableLog, format: Format, take: Callable[[Part], None]) -> bool:
    """Export a log, name what cannot be read, and return whether all could be."""
    try:
        state, _ = await read_state_until_damage(log)
        metadata = await export_metadata(log, state, version("perdure"))
        unreadable = await export_log(log, format, metadata, take)
    except Altered as error:
        note(f"{log.conversation_id}: {error}", "red")
        return False
    for slot in unreadable:
        note(f"{log.conversation_id}: {slot}", "red")
    return not unreadable
