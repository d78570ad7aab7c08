"""Hidden conversations: a gateway answers as if they did not exist, and the store keeps them."""

from collections.abc import Callable
from time import monotonic

from perdure.errors import NotFound
from perdure.storage.cache import Cache
from perdure.storage.conversations import hide_conversation, is_hidden, show_conversation
from perdure.storage.store import Store

MAX_AGE = 2.0
"""Seconds for which another gateway may not know yet that a conversation was hidden, or shown."""

MAX_KNOWN = 50_000


class HiddenConversations:
    """The hidden conversations, from the store."""

    def __init__(self, store: Store, clock: Callable[[], float] = monotonic) -> None:
        self._store = store
        self._clock = clock
        self._asked: Cache[tuple[str, str], tuple[float, bool]] = Cache(MAX_KNOWN)

    async def hide(self, user_id: str, conversation_id: str) -> None:
        await hide_conversation(self._store, user_id, conversation_id)
        self._asked.put((user_id, conversation_id), (self._clock(), True))

    async def show(self, user_id: str, conversation_id: str) -> None:
        """Show a conversation again, if it is hidden."""
        if await is_hidden(self._store, user_id, conversation_id):
            await show_conversation(self._store, user_id, conversation_id)
        self._asked.put((user_id, conversation_id), (self._clock(), False))

    async def require_visible(self, user_id: str, conversation_id: str, name: str) -> None:
        """Raise NotFound for a hidden conversation; one that does not exist is not hidden.

        `name` is what it is called in the error: the same as where it does not exist.
        """
        if await self._is_hidden(user_id, conversation_id):
            raise NotFound.for_conversation(name)

    async def _is_hidden(self, user_id: str, conversation_id: str) -> bool:
        ids = (user_id, conversation_id)
        asked = self._asked.get(ids)
        if asked is not None and self._clock() - asked[0] < MAX_AGE:
            return asked[1]
        now = self._clock()
        hidden = await is_hidden(self._store, user_id, conversation_id)
        self._asked.put(ids, (now, hidden))
        return hidden
