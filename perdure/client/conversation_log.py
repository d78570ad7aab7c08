"""The log of a conversation: the user's own, or another user's who has granted access to it."""

from perdure.errors import Invalid
from perdure.storage.granted_store import open_granted
from perdure.storage.grants import Shareable
from perdure.storage.keys import check_user_id
from perdure.storage.log.entry_cache import EntryCache
from perdure.storage.log.event_log import EventLog
from perdure.storage.store import Store


def open_conversation_log(
    store: Store,
    user_id: str,
    conversation_id: str,
    owner: str | None = None,
    cache: EntryCache | None = None,
) -> EventLog:
    """Open the log of a conversation, existing or not. Raises Invalid for a bad id.

    Another user's is as if it did not exist without a grant, and its entries are not cached: the
    cache would answer after the grant was revoked.
    """
    try:
        check_user_id(user_id)
        if owner is None or owner == user_id:
            return EventLog(store, user_id, conversation_id, cache)
        of = Shareable("conversation", owner, conversation_id)
        return EventLog(open_granted(store, of, user_id), owner, conversation_id)
    except ValueError as error:
        raise Invalid(str(error)) from error
