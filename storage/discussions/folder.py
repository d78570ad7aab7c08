"""The specs of discussions in the store."""

from pydantic import ValidationError

from perdure.agent.discussion.spec import DiscussionSpec
from perdure.storage import keys
from perdure.storage.errors import Altered
from perdure.storage.store import Store, list_folders


async def save_spec(
    store: Store, user_id: str, session_id: str, spec: DiscussionSpec
) -> DiscussionSpec:
    """Write the spec, once; return the one on record."""
    key = keys.discussion_prefix(user_id, session_id) + keys.DISCUSSION
    if await store.create(key, spec.model_dump_json(exclude_none=True).encode()):
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
    """List the ids of a user's discussions."""
    return await list_folders(store, keys.discussions_prefix(user_id))
