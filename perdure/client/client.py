"""The client, which starts, finds and lists conversations.

Temporal, pydantic and boto3 take half a second to import: a program waits for them when it
connects, not when it imports this class.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from perdure.errors import Invalid, Unreachable

if TYPE_CHECKING:
    import temporalio.client

    from perdure.agent.spec import Agent
    from perdure.client.conversation import Conversation
    from perdure.client.images import Image
    from perdure.settings.settings import Settings
    from perdure.storage.store import Store


class Client:
    """The client of one user: plain Temporal signals and objects of the store, nothing else.

    `store_address` is shown in the Temporal UI. `limited_models` are the models with a rate limit:
    their steps go straight to the models' own task queues.
    """

    def __init__(
        self,
        temporal: temporalio.client.Client,
        store: Store,
        user_id: str = "local",
        task_queue: str = "perdure",
        search_attributes: Literal["auto", "off"] = "auto",
        store_address: str | None = None,
        limited_models: Iterable[str] = (),
    ) -> None:
        from perdure.client import connection  # slow

        self._connection = connection
        self.temporal = temporal
        self.store = store
        self.user_id = user_id
        self.task_queue = task_queue
        self.store_address = store_address
        queue_name = connection.model_queue_name
        self.model_queues = {model: queue_name(task_queue, model) for model in limited_models}
        self._cache = connection.EntryCache(16 * 1024 * 1024)
        self._has_search_attributes: bool | None = None if search_attributes == "auto" else False

    @classmethod
    async def connect(cls, settings: Settings | None = None) -> Client:
        """Connect by the settings; without any, by PERDURE_*, `perdure.toml` or `perdure dev`.

        Given settings are the only ones used, but for TEMPORAL_* and AWS_*. A `perdure dev` that
        runs in the data folder is used if no store is set. Raises Unreachable, Invalid.
        """
        from perdure.client import connection  # slow

        settings, store, address = await connection.find_connection(settings)
        return cls(
            store=store,
            temporal=await connection.connect(address, settings.payload_keys, quiet=True),
            user_id=settings.user,
            task_queue=settings.task_queue,
            search_attributes=settings.search_attributes,
            store_address=settings.store,
            limited_models=settings.model_rates,
        )

    async def start(
        self,
        text: str,
        spec: Agent,
        conversation_id: str | None = None,
        message_id: str | None = None,
        images: Sequence[Image] = (),
    ) -> Conversation:
        """Start a conversation with its first message.

        `images` are http addresses, files, bytes, or `data:image/…` with the image itself.
        """
        conversation = self.conversation(conversation_id or self._connection.new_conversation_id())
        await conversation.start(text, spec, message_id, images)
        return conversation

    def conversation(self, conversation_id: str) -> Conversation:
        """Return the handle of a conversation, existing or not. Raises Invalid for a bad id."""
        try:
            log = self._connection.EventLog(self.store, self.user_id, conversation_id, self._cache)
        except ValueError as error:
            raise Invalid(str(error)) from error
        workflow = self._connection.ConversationWorkflow(
            self.temporal,
            log,
            self.task_queue,
            self.has_search_attributes,
            self.store_address,
            self.model_queues,
        )
        return self._connection.Conversation(workflow)

    async def list_conversations(self, limit: int = 20) -> list[str]:
        """List the ids of conversations, the newest first."""
        return await self._connection.list_conversations(self.store, self.user_id, limit)

    async def has_search_attributes(self) -> bool:
        """Tell whether Temporal knows our search attributes; the answer is cached."""
        if self._has_search_attributes is None:
            try:
                missing = await self._connection.missing_attributes(self.temporal)
                self._has_search_attributes = not missing
            except Unreachable:  # the server does not list them
                self._has_search_attributes = False
        return self._has_search_attributes
