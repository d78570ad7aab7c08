"""The client, which starts, finds and lists conversations.

Temporal, pydantic and boto3 take half a second to import: a program waits for them when it
connects, not when it imports this class.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

from perdure.errors import Invalid, Unreachable

if TYPE_CHECKING:
    from pathlib import Path

    import temporalio.client

    from perdure.agent.spec import Agent
    from perdure.client.conversation import Conversation
    from perdure.client.images import Image
    from perdure.settings.settings import Settings
    from perdure.storage.store import Store


class Client:
    """The client of one user: plain Temporal signals and objects of the store, nothing else.

    `store_address` is shown in the Temporal UI. `limited_models` are the models with a rate limit:
    their steps go straight to the models' own task queues. `code_folder` has the modules of the
    program's own tools: a worker of `perdure dev` imports them from there.
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
        code_folder: Path | None = None,
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
        self.code_folder = str(code_folder.absolute()) if code_folder else None
        self._cache = connection.EntryCache(16 * 1024 * 1024)
        self._has_search_attributes: bool | None = None if search_attributes == "auto" else False

    @classmethod
    def connect(cls, settings: Settings | None = None) -> Connecting:
        """Connect by the settings; without any, by PERDURE_*, `perdure.toml` or `perdure dev`.

        Write `client = await Client.connect()`, or `async with Client.connect() as client`, which
        closes it. Given settings are the only ones used, but for TEMPORAL_* and AWS_*. A `perdure
        dev` that runs in the data folder is used if no store is set. Raises Unreachable, Invalid.
        """
        return Connecting(settings)

    async def close(self) -> None:
        """Close the connections to the store; the client is of no use afterwards."""
        await self.store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(
        self,
        text: str,
        spec: Agent,
        conversation_id: str | None = None,
        message_id: str | None = None,
        images: Sequence[Image] = (),
    ) -> Conversation:
        """Start a conversation with its first message.

        `images` are http addresses, files, bytes, or `data:image/…` with the image itself. Raises
        Invalid, also for a budget where a model's price is neither its own nor listed by litellm.
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
            self.code_folder,
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


class Connecting:
    """A client that is about to connect: to be awaited, or entered by `async with`."""

    def __init__(self, settings: Settings | None) -> None:
        self._settings = settings
        self._client: Client | None = None

    def __await__(self) -> Generator[Any, Any, Client]:
        return self._connect().__await__()

    async def __aenter__(self) -> Client:
        self._client = await self._connect()
        return self._client

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.close()

    async def _connect(self) -> Client:
        from perdure.client import connection  # slow

        settings, store, address = await connection.find_connection(self._settings)
        return Client(
            store=store,
            temporal=await connection.connect(address, settings.payload_keys, quiet=True),
            user_id=settings.user,
            task_queue=settings.task_queue,
            search_attributes=settings.search_attributes,
            store_address=settings.store,
            limited_models=settings.model_rates,
            code_folder=settings.code,
        )
