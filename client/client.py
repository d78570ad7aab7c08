"""Conversations, for programs: start one, find one, list them."""

from collections.abc import Iterable, Sequence
from typing import Literal

import temporalio.client

from agent.lanes import lane_of
from agent.spec import Spec
from client.connect import connect
from client.conversation import Conversation
from client.errors import Invalid
from client.ids import new_conversation_id, new_message_id
from client.remote import Remote
from client.search import searchable
from client.store import store_of
from settings.settings import Settings
from storage.cache import EntryCache
from storage.conversations import conversations
from storage.log import EventLog
from storage.store import Store

CACHE = 16 * 1024 * 1024


class Client:
    """Everything goes through plain Temporal signals and the store's objects; nothing is secret.

    `address` is the store's, for people who look at a workflow in the Temporal UI. `limited` are
    the models that workers ask only so often: who knows them saves each conversation a detour.
    """

    def __init__(
        self,
        temporal: temporalio.client.Client,
        store: Store,
        user_id: str = "local",
        task_queue: str = "perdure",
        search_attributes: Literal["auto", "off"] = "auto",
        address: str | None = None,
        limited: Iterable[str] = (),
    ) -> None:
        self.temporal = temporal
        self.store = store
        self.user_id = user_id
        self.task_queue = task_queue
        self.address = address
        self.lanes = {model: lane_of(task_queue, model) for model in limited}
        self._cache = EntryCache(CACHE)
        self._searchable: bool | None = None if search_attributes == "auto" else False

    @classmethod
    async def connect(cls, settings: Settings) -> "Client":
        """Raises Unreachable, Invalid, StoreError."""
        return cls(
            store=store_of(settings),
            temporal=await connect(payload_keys=settings.payload_keys, quiet=True),
            user_id=settings.user,
            task_queue=settings.task_queue,
            search_attributes=settings.search_attributes,
            address=settings.store,
            limited=settings.model_rates,
        )

    async def start(
        self,
        text: str,
        spec: Spec,
        conversation_id: str | None = None,
        message_id: str | None = None,
        images: Sequence[str] = (),
    ) -> Conversation:
        """Start a conversation with its first message."""
        conversation = self.conversation(conversation_id or new_conversation_id())
        await conversation.start(text, spec, message_id or new_message_id(), images)
        return conversation

    def conversation(self, conversation_id: str) -> Conversation:
        """A conversation by its id, whether it is there or not. Raises Invalid for no such id."""
        try:
            log = EventLog(self.store, self.user_id, conversation_id, self._cache)
        except ValueError as error:
            raise Invalid(str(error)) from error
        queue, known = self.task_queue, self.searchable
        remote = Remote(self.temporal, log, queue, known, self.address, self.lanes)
        return Conversation(remote)

    async def conversations(self, limit: int = 20) -> list[str]:
        """Ids, the newest first."""
        return await conversations(self.store, self.user_id, limit)

    async def searchable(self) -> bool:
        """Whether conversations can be found in Temporal by our search attributes; asked once."""
        if self._searchable is None:
            self._searchable = await searchable(self.temporal)
        return self._searchable
