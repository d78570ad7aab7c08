"""Answers that are files: no browser may show as a page of ours what an agent wrote."""

import asyncio
import zipfile
from collections.abc import AsyncIterator, Callable
from importlib.metadata import version
from tempfile import TemporaryFile
from typing import IO
from urllib.parse import quote

from fastapi.responses import StreamingResponse

from perdure.errors import Invalid
from perdure.exports.format import Format, Part
from perdure.exports.formats import find_format, list_format_names
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.exporting import export, export_metadata
from perdure.storage.log.state import read_state_until_damage

BYTES = "application/octet-stream"

MEDIA_TYPES = {".json": "application/json", ".jsonl": "application/x-ndjson", ".html": "text/html"}

CHUNK_BYTES = 256 * 1024

UNREADABLE_HEADER = "X-Unreadable-Events"
"""The header with the number of events that are damaged and left out of an export."""


def download_headers(name: str) -> dict[str, str]:
    """Build the headers of a file of this name."""
    return {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "X-Content-Type-Options": "nosniff",
    }


def find_named_format(name: str) -> Format:
    """Find a format of ours or of an installed package. Raises Invalid."""
    names = list_format_names()
    if name not in names:
        raise Invalid(f"There is no format {name!r}.", f"Use {', '.join(names)}.")
    return find_format(name)


async def export_conversation(log: EventLog, made: Format) -> StreamingResponse:
    """Export a conversation: a format that is a folder is sent as a zip archive.

    Raises Altered and StoreError. It is written to a temporary file first.
    """
    file: IO[bytes] = TemporaryFile()  # noqa: SIM115 - the answer closes it
    try:
        state, _ = await read_state_until_damage(log)
        about = await export_metadata(log, state, version("perdure"))
        take, finish = (_write_zip if not made.suffix else _write_file)(file)
        unreadable = await export(log, made, about, take)
        await asyncio.to_thread(finish)
    except BaseException:
        file.close()
        raise
    suffix = made.suffix or ".zip"
    headers = download_headers(f"{log.conversation_id}{suffix}")
    headers["Content-Length"] = str(file.seek(0, 2))
    if unreadable:
        headers[UNREADABLE_HEADER] = str(len(unreadable))
    return StreamingResponse(
        read_and_close(file), headers=headers, media_type=MEDIA_TYPES.get(suffix, BYTES)
    )


def _write_file(file: IO[bytes]) -> tuple[Callable[[Part], None], Callable[[], None]]:
    def take(part: Part) -> None:
        file.write(part.body)

    return take, file.flush


def _write_zip(file: IO[bytes]) -> tuple[Callable[[Part], None], Callable[[], None]]:
    archive = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED)

    def take(part: Part) -> None:
        archive.writestr(part.path, part.body)

    return take, archive.close


async def read_and_close(file: IO[bytes]) -> AsyncIterator[bytes]:
    """Yield the bytes of a file from its beginning, and close it."""
    try:
        file.seek(0)
        while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
            yield chunk
    finally:
        file.close()
