"""Ids as people type them: a whole id, its first characters, or `@` for the newest.

`USER/ID` is a conversation that another user shares, `USER/NAME` a batch: both have to be whole.
"""

import re
from dataclasses import fields
from typing import TYPE_CHECKING

from perdure.cli.options import NEWEST, Options
from perdure.client.ids import split_owner

if TYPE_CHECKING:
    from perdure.cli.catalogs.catalog import Catalog

MIN_PREFIX = 4
MAX_LISTED = 10
"""Conversations named in the error that a prefix is ambiguous."""

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
SHARED = re.compile(rf"[^/]+/({UUID.pattern})", re.IGNORECASE)
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
    if kind.startswith("own "):
        _refuse_shared(names, kind)
        kind = kind.removeprefix("own ")
    if all(map(_is_whole, names)):
        return [_lower(name) for name in names]
    from perdure.cli.environment import open_catalog  # slow
    from perdure.errors import Unreachable

    try:
        catalog = await open_catalog()
    except Unreachable:
        if kind == "batch":  # the command itself says what is missing, after its own checks
            return names
        raise
    batches = await catalog.list_batches() if "batch" in kind else []
    if kind == "batch":
        return [_resolve_batch(name, batches) for name in names]
    return [name if name in batches else await _resolve(catalog, name, kind) for name in names]


def _is_whole(name: str) -> bool:
    return UUID.fullmatch(name) is not None or SHARED.fullmatch(name) is not None


def _lower(name: str) -> str:
    """Return an id in lower case; the user before it, and any other name, stay as they are."""
    owner, slash, conversation_id = name.rpartition("/")
    return f"{owner}{slash}{conversation_id.lower()}" if _is_whole(name) else name


def _refuse_shared(names: list[str], kind: str) -> None:
    from perdure.errors import Forbidden

    for name in names:
        owner = split_owner(name)[1]
        if owner is not None and (kind == "own batch" or SHARED.fullmatch(name)):
            what = kind.removeprefix("own ")
            raise Forbidden(f"Only {owner} can do that, whose {what} {name} is.")


async def _resolve(catalog: "Catalog", name: str, kind: str) -> str:
    """Return the id that `name` stands for; a name that may be a batch's is left as it is."""
    from perdure.errors import Invalid, NotFound

    if name == NEWEST:
        if newest := await catalog.newest():
            return newest
        raise NotFound("There are no conversations yet.", 'Begin one with `perdure run "TASK"`.')
    if _is_whole(name):
        return _lower(name)
    if not PREFIX.fullmatch(name) or len(name) < MIN_PREFIX:
        if kind == "conversation or batch":
            return name
        raise Invalid(
            f"{name!r} is not a conversation's id.",
            f"Give the id, its first characters (at least {MIN_PREFIX}), or {NEWEST} for the "
            "newest; `perdure ls` lists them.",
        )
    ids = await catalog.list_by_prefix(name.lower(), MAX_LISTED + 1)
    if len(ids) == 1:
        return ids[0]
    if not ids and kind == "conversation or batch":
        return name
    if not ids:
        raise NotFound(f"No conversation's id begins with {name!r}.", "`perdure ls` lists them.")
    raise Invalid(await _describe_candidates(catalog, name, ids), "Give more of the id.")


async def _describe_candidates(catalog: "Catalog", name: str, ids: list[str]) -> str:
    from perdure.cli.output import shorten_line

    summaries = await catalog.summarize(ids[:MAX_LISTED])
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
