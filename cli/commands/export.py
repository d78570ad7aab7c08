"""`perdure export`: conversations in the formats of others."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from cli.failures import FAILED, OK
from cli.output import Format as Printed
from cli.output import note
from cli.performing import command_app, perform
from cli.reading import must_exist
from cli.stack import log_of
from client.errors import Conflict, Invalid
from exports.format import Format, Part
from exports.formats import FORMATS
from exports.json_text import compact
from storage.errors import Altered
from storage.exporting import about, export
from storage.log import EventLog
from storage.state import legible_state

app = command_app()

Name = StrEnum("Name", [(one.name, one.name) for one in FORMATS])  # type: ignore[misc]

TOLD = "; ".join(f"{one.name}: {one.told}" for one in FORMATS)


@app.command("export")
def command(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="The conversations' ids.")],
    name: Annotated[Name, typer.Option("--format", metavar="NAME", help=f"{TOLD}.")],
    output: Annotated[
        str, typer.Option("--output", metavar="PATH", help="A file or a folder; - is stdout.")
    ] = "-",
) -> None:
    """Export conversations: messages, ATIF, OpenHands, Inspect, HTML and more.

    Only the store is needed. Of many conversations a file gets a line each, where the format is
    JSON, and a folder a file each. What is damaged is named, and the rest is exported: then the
    exit code is 1.
    """
    made = next(one for one in FORMATS if one.name == name)
    perform(_export(list(dict.fromkeys(ids)), made, output), Printed.text)


async def _export(ids: Sequence[str], made: Format, output: str) -> int:
    folder = is_folder(made, output, len(ids))
    logs = [await log_of(one) for one in ids]
    for log in logs:
        await must_exist(log)
    if folder:
        whole = [await _into(Path(output), log, made) for log in logs]
    else:
        with _opened(output) as file:
            whole = [await _to(file, log, made, joined=len(logs) > 1) for log in logs]
    return OK if all(whole) else FAILED


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


async def _into(folder: Path, log: EventLog, made: Format) -> bool:
    """Write a file, or a folder of files, that is called as the conversation is."""
    if made.suffix:
        with _opened(str(folder / f"{log.conversation_id}{made.suffix}")) as file:
            return await _to(file, log, made)
    own = folder / log.conversation_id.replace("-", "")
    if own.exists():
        raise Conflict(f"{own} is there already.", "Remove it, or give another folder.")

    def take(part: Part) -> None:
        with _opened(str(folder / part.path)) as file:
            file.write(part.body)

    return await _carried(log, made, take)


async def _to(file: BinaryIO, log: EventLog, made: Format, joined: bool = False) -> bool:
    """Write to the file; as a line of it, where others are `joined`."""
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


@contextmanager
def _opened(output: str) -> Iterator[BinaryIO]:
    """The file, made anew once all of it is written. Raises Invalid where it cannot be."""
    if output == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(output)
    draft = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as file:
            yield file
        draft.replace(path)
    except OSError as error:
        raise Invalid(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        draft.unlink(missing_ok=True)
