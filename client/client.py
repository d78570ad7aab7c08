"""Conversations, for programs: start one, find one, list them."""

import temporalio.client

from agent.spec import Spec
from client.connect import connect
from client.conversation import Conversation
from client.errors import Invalid
from client.ids import new_conversation_id, new_message_id
from client.store import store_of
from settings.settings import Settings
from storage.cache import EntryCache
from storage.conversations import conversations
from storage.log import EventLog
from storage.store import Store

CACHE = 16 * 1024 * 1024


class Client:
    """Everything goes through plain Temporal signals and the store's objects; nothing is secret."""

    def __init__(
        self,
        temporal: temporalio.client.Client,
        store: Store,
        user_id: str = "local",
        task_queue: str = "perdure",
    ) -> None:
        self.temporal = temporal
        self.store = store
        self.user_id = user_id
        self.task_queue = task_queue
        self._cache = EntryCache(CACHE)

    @classmethod
    async def connect(cls, settings: Settings) -> "Client":
        """Raises Unreachable, Invalid, StoreError."""
        store = store_of(settings)
        return cls(await connect(), store, settings.user, settings.task_queue)

    async def start(
        self,
        text: str,
        spec: Spec,
        conversation_id: str | None = None,
        message_id: str | None = None,
    ) -> Conversation:
        """Start a conversation with its first message."""
        conversation = self.conversation(conversation_id or new_conversation_id())
        await conversation.start(text, spec, message_id or new_message_id())
        return conversation

    def conversation(self, conversation_id: str) -> Conversation:
        """A conversation by its id, whether it is there or not. Raises Invalid for no such id."""
        try:
            log = EventLog(self.store, self.user_id, conversation_id, self._cache)
        except ValueError as error:
            raise Invalid(str(error)) from error
        return Conversation(log, self.temporal, self.task_queue)

    async def conversations(self, limit: int = 20) -> list[str]:
        """Ids, the newest first."""
        return await conversations(self.store, self.user_id, limit)
