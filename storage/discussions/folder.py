"""The specs of discussions in the store."""

from pydantic import ValidationError

from perdure.agent.discussion.spec import DiscussionSpec
from perdure.storage import keys
from perdure.storage.errors import Altered
from perdure.storage.parallel import map_parallel
from perdure.storage.store import Store, list_folders


async def save_spec(
    store: Store, user_id: str, session_id: str, spec: DiscussionSpec
) -> DiscussionSpec:
    """Write the spec, once; return the one on record."""
    key = keys.discussion_prefix(user_id, session_id) + keys.DISCUSSION
    if await store.create(key, spec.model_dump_json().encode()):
        return spec
    return await load_spec(store, user_id, session_id) or spec


async def load_spec(store: Store, user_id: str, session_id: str) -> DiscussionSpec | None:
    """Load the spec; None if there is no such discussion. Raises Altered, ValueError."""
    key = keys.discussion_prefix(user_id, session_id) + keys.DISCUSSION
    body = await store.read(key)
    if body is None:
        return None
    try:
        return DiscussionSpec.model_validate_json(body)
    except ValidationError as error:
        raise Altered(key) from error


async def list_sessions(store: Store, user_id: str) -> list[str]:
    """List the ids of a user's sessions, also of logs that programs write alone.

    A store may list one that was just deleted.
    """
    return await list_folders(store, keys.discussions_prefix(user_id))


async def list_discussions(store: Store, user_id: str) -> list[str]:
    """List the ids of a user's discussions: the sessions that have a spec."""

    async def find(session_id: str) -> tuple[str, bool]:
        key = keys.discussion_prefix(user_id, session_id) + keys.DISCUSSION
        return session_id, key in await store.list(key, limit=1)

    sessions = await list_sessions(store, user_id)
    return [name async for name, is_there in map_parallel(find, sessions) if is_there]
