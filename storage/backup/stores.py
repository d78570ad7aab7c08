"""Copies of whole stores."""

from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime

from perdure.events.base import TIMESTAMP_FORMAT
from perdure.storage import keys
from perdure.storage.backup.logs import copy_conversation, copy_discussion
from perdure.storage.backup.objects import UNCHANGING, Copied, copy_objects
from perdure.storage.store import Store, list_folders, list_keys

SHORT_LIVED = (keys.TOKENS, keys.BEGUN_REQUESTS)
"""What expires within hours, and gives access until then: no copy has it."""

CACHES = ("index", "memory-index")
"""Folders of a user that are made again from the rest."""

LOGS = ("conversations", "discussions")


async def copy_store(
    source: Store, target: Store, moment: datetime, report: Callable[[Copied], None]
) -> Copied:
    """Copy a store as its logs were at a moment; what is no log is copied as it is now.

    It copies only what the target lacks, or has in another version, and deletes nothing.
    `report` is called after each log. Raises StoreError.
    """
    until, copied = moment.astimezone(UTC).strftime(TIMESTAMP_FORMAT), Copied()
    for prefix in ("app/", "gateway/"):
        found = [key async for key in list_keys(source, prefix) if not key.startswith(SHORT_LIVED)]
        await copy_objects(source, target, found, copied)
    for user_id in await list_folders(source, keys.USERS):
        copied.users += 1
        await _copy_objects_of_user(source, target, user_id, copied)
        async for prefix in list_logs(source, keys.discussions_prefix(user_id)):
            await copy_discussion(source, target, prefix, until, copied)
            report(copied)
        async for prefix in list_logs(source, keys.conversations_prefix(user_id)):
            await copy_conversation(source, target, prefix, until, copied)
            report(copied)
    return copied


async def list_logs(store: Store, folder: str) -> AsyncGenerator[str, None]:
    """Yield the prefix of each log in a user's folder of conversations or discussions."""
    for name in await list_folders(store, folder):
        yield f"{folder}{name}/"


async def _copy_objects_of_user(source: Store, target: Store, user_id: str, copied: Copied) -> None:
    """Copy all of a user's objects but the logs, before these: they speak of earlier ones."""
    await copy_objects(source, target, [keys.user_settings_key(user_id)], copied)
    home = f"{keys.USERS}{user_id}/"
    for name in await list_folders(source, home):
        if name in LOGS + CACHES:
            continue
        folder = f"{home}{name}/"
        present = {key async for key in list_keys(target, folder) if UNCHANGING.search(key)}
        found = [key async for key in list_keys(source, folder) if key not in present]
        await copy_objects(source, target, found, copied)


async def is_empty(store: Store) -> bool:
    """Tell whether a store has no object. Raises StoreError."""
    return not await store.list("", limit=1)
