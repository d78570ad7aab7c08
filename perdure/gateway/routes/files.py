"""The files of a conversation: its workspace at any slot, what changed, and its blobs."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from perdure.api.files import Changes, File, FileChange, Files
from perdure.client.file_changes import read_workspace_changes
from perdure.client.workspace_files import load_kept_files, open_file
from perdure.errors import NotFound
from perdure.events.images import MEDIA_TYPES, detect_media_type
from perdure.gateway.callers import ToRead
from perdure.gateway.views.conversations import require_conversation
from perdure.gateway.views.downloads import BYTES, download_headers
from perdure.gateway.views.validators import make_etag, matches_etag
from perdure.storage.keys import blob_key

router = APIRouter(prefix="/v1/conversations/{conversation_id}", tags=["files"])

At = Annotated[int | None, Query(ge=-1, le=2**53, description="The slot; by default the newest.")]

BINARY = {"schema": {"type": "string", "format": "binary"}}
FILE_RESPONSES: dict[int | str, dict[str, Any]] = {200: {"content": {BYTES: BINARY}}}
BLOB_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"content": dict.fromkeys((BYTES, *MEDIA_TYPES), BINARY)}
}


@router.get("/files")
async def list_files(to: ToRead, at: At = None) -> Files:
    """List the files of the workspace as they were kept last up to a slot."""
    await require_conversation(to.conversation)
    kept = await load_kept_files(to.conversation.log, at, to.gateway.snapshots)
    if kept is None:
        return Files()
    items = [
        File(path=path, size=size)
        for path, size in kept.sizes().items()
        if _is_text(path)  # others have no address
    ]
    return Files(seq=kept.seq, items=tuple(items), fault=kept.fault, left_out=kept.left_out)


@router.get("/files/{path:path}", response_class=Response, responses=FILE_RESPONSES)
async def get_file(
    to: ToRead, path: Annotated[str, Path(min_length=1, max_length=4096)], at: At = None
) -> Response:
    """Read a file of the workspace as it was kept last up to a slot."""
    await require_conversation(to.conversation)
    log = to.conversation.log
    opened = open_file(log, await load_kept_files(log, at, to.gateway.snapshots), path)
    headers = {**download_headers(path.rpartition("/")[2]), "Content-Length": str(opened.file.size)}
    pieces = opened.pieces
    first = [await anext(pieces)] if opened.file.pieces else []  # errors come before the headers
    return StreamingResponse(_chain(first, pieces), headers=headers, media_type=BYTES)


@router.get("/diff")
async def get_changes(
    to: ToRead,
    after_seq: Annotated[int, Query(ge=-1, le=2**53)] = -1,
    through_seq: Annotated[int | None, Query(ge=0, le=2**53)] = None,
) -> Changes:
    """Show what the events after a slot changed in the workspace, through another or the newest."""
    await require_conversation(to.conversation)
    changes = await read_workspace_changes(to.conversation.log, after_seq, through_seq)
    summary = await asyncio.to_thread(changes.summarize)
    return Changes(
        items=tuple(FileChange(**asdict(change)) for change in summary),
        diff=await asyncio.to_thread(changes.diff),
        faults=tuple(changes.faults),
    )


@router.get("/blobs/{sha256}", response_class=Response, responses=BLOB_RESPONSES)
async def get_blob(
    request: Request, to: ToRead, sha256: Annotated[str, Path(pattern="^[0-9a-f]{64}$")]
) -> Response:
    """Read bytes that an event refers to as `blobs/{sha256}`, such as an image."""
    await require_conversation(to.conversation)
    headers = {"ETag": make_etag(sha256), "Cache-Control": "private, no-cache"}
    if matches_etag(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    body = await to.conversation.log.read_blob(blob_key(sha256))
    if body is None:
        raise NotFound(f"The conversation has no blob {sha256}.")
    media_type = detect_media_type(body) or BYTES
    return Response(body, headers={**download_headers(sha256), **headers}, media_type=media_type)


def _is_text(path: str) -> bool:
    """Tell whether a path is text, not bytes of another encoding."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


async def _chain(first: list[bytes], rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    for piece in first:
        yield piece
    async for piece in rest:
        yield piece
