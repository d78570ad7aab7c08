"""Copies of logs up to a moment: those of conversations, and those that agents share.

The events of a log are cut at the first one that is later. What is beside them is copied if it
belongs to the events before the cut: a cache of a log that was cut is left out, because readers
make it again.
"""

import json
import re
from typing import Any

from perdure.storage import keys
from perdure.storage.backup.objects import UNCHANGING, Copied, copy_objects, write_object
from perdure.storage.parallel import MAX_PARALLEL, map_parallel
from perdure.storage.store import Store, list_keys

CACHES = (keys.STATE, keys.TAIL, keys.LLM_MESSAGES)

_SEQ = re.compile(r"(?:events|responses|workspace/changes)/(\d{6})")
_SEGMENT = re.compile(r"segments/\d{6}-(\d{6})")


async def copy_conversation(
    source: Store, target: Store, prefix: str, moment: str, copied: Copied
) -> None:
    """Copy a conversation's events up to the moment, and the objects that belong to them."""
    caches = {name: await source.read(prefix + name) for name in CACHES}  # before the events
    end, is_cut = await _copy_events(source, target, prefix, moment, copied)
    if end == 0:
        return
    copied.conversations += 1
    copied.later += is_cut
    beside = [key async for key in list_keys(source, prefix) if _is_beside(key, prefix)]
    present = {key async for key in list_keys(target, prefix) if UNCHANGING.search(key)}
    chosen = [key for key in beside if _belongs(key.removeprefix(prefix), end, is_cut)]
    marks = [key for key in chosen if key.startswith(prefix + keys.FORKS)]
    others = [key for key in chosen if key not in present and key not in marks]
    await copy_objects(source, target, others, copied)
    await _copy_marks(source, target, marks, end, copied)
    if not is_cut:
        for name, body in caches.items():
            copied.objects += body is not None and await write_object(target, prefix + name, body)


async def copy_discussion(
    source: Store, target: Store, prefix: str, moment: str, copied: Copied
) -> None:
    """Copy the events that agents share up to the moment, and what belongs to them."""
    end, is_cut = await _copy_events(source, target, prefix, moment, copied)
    if end == 0 and is_cut:
        return
    copied.discussions += 1
    copied.later += is_cut
    beside = [key async for key in list_keys(source, prefix) if _is_beside(key, prefix)]
    if is_cut:
        beside = [key for key in beside if key != prefix + keys.DISCUSSION_STATE]
    records = [key for key in beside if key.startswith((prefix + keys.ARCHIVE, prefix + "ids/"))]
    await copy_objects(source, target, (key for key in beside if key not in records), copied)
    for key in records:
        body = await source.read(key)
        note = _parse(body)
        if body is not None and note.get("through", note.get("after", 0)) < end:
            copied.objects += await write_object(target, key, body)


def _is_beside(key: str, prefix: str) -> bool:
    name = key.removeprefix(prefix)
    return not name.startswith(keys.EVENTS) and name not in (*CACHES, keys.TROUBLE)


def _belongs(name: str, end: int, is_cut: bool) -> bool:
    """Tell whether an object beside the events belongs to a log of `end` slots.

    The answer of a model is stored before its events: one behind the last slot belongs to a log
    that was not cut.
    """
    if segment := _SEGMENT.match(name):
        return int(segment[1]) <= end
    numbered = _SEQ.match(name)
    return not is_cut or numbered is None or int(numbered[1]) < end


async def _copy_marks(
    source: Store, target: Store, marks: list[str], end: int, copied: Copied
) -> None:
    """Copy the marks of forks that begin with no more than the slots that were copied."""
    for key in marks:
        body = await source.read(key)
        if body is not None and _parse(body).get("at", 0) < end:
            copied.objects += await write_object(target, key, body)


async def _copy_events(
    source: Store, target: Store, prefix: str, moment: str, copied: Copied
) -> tuple[int, bool]:
    """Copy the events up to the moment; return the number behind the last, and whether more come.

    Events that the target has are taken to be earlier: a copy is made of a growing store.
    """
    folder = prefix + keys.EVENTS
    present = {key async for key in list_keys(target, folder)}
    listed = [key async for key in list_keys(source, folder)]
    end, wanted = 0, [key for key in listed if key not in present]
    if kept := [key for key in listed if key in present]:
        end = _end_behind(kept[-1], prefix)
    for first in range(0, len(wanted), MAX_PARALLEL):
        page = wanted[first : first + MAX_PARALLEL]
        bodies = [body async for body in map_parallel(source.read, page)]
        times = [str(_parse(body).get("timestamp", "")).rstrip("Z") for body in bodies]
        later = next((nth for nth, time in enumerate(times) if time > moment), len(page))
        pairs = [pair for pair in zip(page[:later], bodies[:later], strict=True) if pair[1]]
        async for is_written in map_parallel(lambda pair: _write(target, pair), pairs):
            copied.events += is_written
            copied.objects += is_written
        copied.newest = max([copied.newest, *times[:later]])
        if later > 0:
            end = max(end, _end_behind(page[later - 1], prefix))
        if later < len(page):
            return end, True
    return end, False


async def _write(target: Store, pair: tuple[str, bytes | None]) -> bool:
    key, body = pair
    return body is not None and await write_object(target, key, body)


def _end_behind(key: str, prefix: str) -> int:
    """Return the number behind the slot of an event's key."""
    return int(key.removeprefix(prefix + keys.EVENTS)[:6]) + 1


def _parse(body: bytes | None) -> dict[str, Any]:
    """Parse an object; a damaged one has no fields, is copied as it is, and found afterwards."""
    try:
        fields = json.loads(body or b"")
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}
