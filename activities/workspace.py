"""The files of a conversation: kept in the store once they changed, restored where they are not."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import islice
from pathlib import Path

from activities.world import World
from agent.spec import Spec
from events.entry import Entry
from events.files import Files
from storage.errors import Altered, Held, StoreRefused, TooLarge, Unrestorable
from storage.keys import conversation_prefix
from storage.log import EventLog
from storage.snapshots.mark import at, hold
from storage.snapshots.restore import restore
from storage.snapshots.take import take
from storage.snapshots.tree import Skipped
from tools.terminal import SESSIONS

logger = logging.getLogger(__name__)

MOST_NAMED = 10
"""Things that a snapshot does not have and that are named in the log."""

NOWHERE = -1
"""Before every slot: nothing is known of the files here."""


def keeps(world: World, spec: Spec) -> bool:
    """Whether the files of such a conversation outlive the disk of this worker."""
    wanted = spec.workspace is None if spec.snapshots is None else spec.snapshots
    return wanted and world.home is not None


async def restored(world: World, log: EventLog, spec: Spec, slot: int | None) -> None:
    """Have the files here that slot `slot` tells of, unless these or later ones are here already.

    What was changed here since then stays: a call whose outcome is unknown may have done it. Raises
    Altered and Unrestorable, StoreError, and OSError where the files cannot be made.
    """
    if slot is None or not keeps(world, spec):
        return
    folder = world.workspace(spec, log.conversation_id)
    async with _alone(folder) as descriptor:
        if _seen(descriptor) >= slot and at(folder) is not None:
            return
        files = (await log.at(slot)).files
        if files is None or files.snapshot is None:
            return
        # What was started in the folder that is replaced would go on in the old one.
        await SESSIONS.end(log.conversation_id)
        world.mcp.forget(log.conversation_id)
        await restore(world.store, files.snapshot, folder, world.snapshots)
        await asyncio.to_thread(world.sandbox.prepare, folder)
        _see(descriptor, slot)
    logger.info("conversation %s goes on here, with its files", log.conversation_id)


async def recorded(
    world: World,
    log: EventLog,
    spec: Spec,
    slot: int | None,
    append: Callable[[Files | None], Awaitable[list[Entry]]],
    *,
    changed: bool,
) -> list[Entry]:
    """Put an answer on record, and with it where the files are that belong to it, if that is new.

    They are in the store before the answer is in the log. Who comes meanwhile waits, so that later
    slots tell of later files. `slot` told of them last; `changed` says whether they may differ by
    now. Where another process holds them, the next answer takes them along. Raises what `append`
    raises, and StoreUnavailable.
    """
    if not keeps(world, spec) or (slot is None and not changed):
        return await append(None)
    folder = world.workspace(spec, log.conversation_id)
    async with AsyncExitStack() as held:
        try:
            descriptor = await held.enter_async_context(_alone(folder))
        except Held as error:
            logger.warning("%s", error)
            return await append(None)
        newest = max(_seen(descriptor), NOWHERE if slot is None else slot)
        before = (await log.at(newest)).files if newest != NOWHERE else None
        files = await _files(world, log, folder, before, changed)
        entries = await append(None if files == before else files)
        if entries[-1].files == files:
            _see(descriptor, entries[-1].seq)
        return entries


async def _files(
    world: World, log: EventLog, folder: Path, before: Files | None, changed: bool
) -> Files:
    assert world.home is not None, "files without a home are not kept"
    files = before.model_copy(update={"home": world.home}) if before else Files(home=world.home)
    if not changed:
        return files
    prefix = conversation_prefix(log.user_id, log.conversation_id)
    last = files.snapshot
    try:
        found = (world.snapshots, world.secrets.holds)
        key = await take(world.store, prefix, folder, last, *found) or last
    except (Altered, Unrestorable, TooLarge, StoreRefused, OSError) as error:
        fault = world.secrets.mask(str(error))
        logger.warning("the files of %s are not kept: %s", log.conversation_id, fault)
        return files.model_copy(update={"fault": fault})
    if key == last:
        return files.model_copy(update={"fault": None})
    return Files(home=world.home, snapshot=key, left_out=_left_out(world, key))


def _left_out(world: World, key: str | None) -> dict[str, str]:
    """What the snapshot that was just taken does not have."""
    snapshot = world.snapshots.get(key) if key else None
    tree = snapshot.tree.items() if snapshot else ()
    skipped = ((path, entry.why) for path, entry in tree if isinstance(entry, Skipped))
    return {world.secrets.mask(path): why for path, why in islice(skipped, MOST_NAMED)}


@asynccontextmanager
async def _alone(folder: Path) -> AsyncIterator[int]:
    """One at a time in a folder, whatever process it is in; a process that dies lets go.

    Gives the file, beside the folder, that says which slot told of the files as they are here.
    """
    beside = folder.parent / ".snapshots"
    beside.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(beside / f"{folder.name}.slot", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        await hold(descriptor, folder)
        yield descriptor
    finally:
        os.close(descriptor)


def _seen(descriptor: int) -> int:
    text = os.pread(descriptor, 16, 0)
    return int(text) if text else NOWHERE


def _see(descriptor: int, slot: int) -> None:
    os.pwrite(descriptor, b"%-16d" % slot, 0)
