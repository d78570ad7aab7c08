"""Ids as people type them: a whole id, its first characters, or `@` for the newest."""

import asyncio
import re
from dataclasses import fields
from typing import TYPE_CHECKING

from perdure.cli.options import NEWEST, Options

if TYPE_CHECKING:
    from perdure.storage.store import Store

MIN_PREFIX = 4
MAX_LISTED = 10
"""Conversations named in the error that a prefix is ambiguous."""

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
PREFIX = re.compile(r"[0-9a-f][0-9a-f-]*", re.IGNORECASE)


async def resolve_ids(options: Options) -> None:
    """Replace what stands for an id in the options by the whole id.

    Whole ids need no request. Raises Invalid, NotFound, Unreachable, StoreError.
    """
    for field in fields(options):
        kind = field.metadata.get("ids")
        value = getattr(options, field.name)
        if kind and isinstance(value, str):
            setattr(options, field.name, (await _resolve_all([value], kind))[0])
        elif kind and value:
            setattr(options, field.name, await _resolve_all(value, kind))


async def _resolve_all(names: list[str], kind: str) -> list[str]:
    if all(map(_is_whole, names)):
        return [_lower(name) for name in names]
    from perdure.cli.environment import open_store_alone  # slow
    from perdure.errors import Unreachable
    from perdure.storage import keys
    from perdure.storage.store import list_folders

    try:
        store, user = await open_store_alone()
    except Unreachable:
        if kind == "batch":  # the command itself says what is missing, after its own checks
            return names
        raise
    batches = await list_folders(store, keys.batches_prefix(user)) if "batch" in kind else []
    if kind == "batch":
        return [_resolve_batch(name, batches) for name in names]
    return [name if name in batches else await _resolve(store, user, name, kind) for name in names]


def _is_whole(name: str) -> bool:
    return UUID.fullmatch(name) is not None


def _lower(name: str) -> str:
    return name.lower() if _is_whole(name) else name


async def _resolve(store: "Store", user: str, name: str, kind: str) -> str:
    """Return the id that `name` stands for; a name that may be a batch's is left as it is."""
    from perdure.errors import Invalid, NotFound
    from perdure.storage.conversations import list_by_prefix, list_conversations

    if name == NEWEST:
        if newest := await list_conversations(store, user, 1):
            return newest[0]
        raise NotFound("There are no conversations yet.", 'Begin one with `perdure run "TASK"`.')
    if _is_whole(name):
        return name.lower()
    if not PREFIX.fullmatch(name) or len(name) < MIN_PREFIX:
        if kind == "conversation or batch":
            return name
        raise Invalid(
            f"{name!r} is not a conversation's id.",
            f"Give the id, its first characters (at least {MIN_PREFIX}), or {NEWEST} for the "
            "newest; `perdure ls` lists them.",
        )
    ids = await list_by_prefix(store, user, name.lower(), MAX_LISTED + 1)
    if len(ids) == 1:
        return ids[0]
    if not ids and kind == "conversation or batch":
        return name
    if not ids:
        raise NotFound(f"No conversation's id begins with {name!r}.", "`perdure ls` lists them.")
    raise Invalid(await _describe_candidates(store, user, name, ids), "Give more of the id.")


async def _describe_candidates(store: "Store", user: str, name: str, ids: list[str]) -> str:
    from perdure.cli.output import shorten_line
    from perdure.storage.summaries import summarize

    summaries = await asyncio.gather(*(summarize(store, user, id) for id in ids[:MAX_LISTED]))
    lines = [
        f"  {summary.id}  {shorten_line(summary.title or '', 60)}".rstrip()
        for summary in summaries
        if summary is not None
    ]
    more = ["  and others"] if len(ids) > MAX_LISTED else []
    return "\n".join([f"{name!r} may be any of these conversations:", *lines, *more])


def _resolve_batch(name: str, batches: list[str]) -> str:
    """Return the name of the batch that alone begins with `name`, else `name` itself."""
    candidates = [batch for batch in batches if batch.startswith(name)]
    return candidates[0] if name not in batches and len(candidates) == 1 else name
