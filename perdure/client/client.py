"""The client, which starts, finds and lists conversations.

Temporal, pydantic and boto3 take half a second to import: a program waits for them when it
connects, not when it imports this class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from perdure.client.connecting import Connecting
from perdure.client.http.client import HttpClient

if TYPE_CHECKING:
    from pathlib import Path

    import temporalio.client
    from pydantic import SecretStr

    from perdure.agent.loop.ask import AskResponse
    from perdure.agent.loop.status import Status
    from perdure.agent.spec import Agent
    from perdure.api.conversations import Page
    from perdure.api.secrets import Secret
    from perdure.client.conversation import Conversation
    from perdure.client.fork_handle import Fork
    from perdure.client.images import Image
    from perdure.client.recording import RecordedEvents
    from perdure.secrets.vault import Vault
    from perdure.settings.experiments import Experiment
    from perdure.settings.settings import Settings
    from perdure.storage.shared import Shared
    from perdure.storage.store import Store


class Client:
    """The client of one user: plain Temporal signals and objects of the store, nothing else.

    It addresses the conversations and batches of `user_id`: whoever knows the id of another user's
    reaches nothing with it. Conversations that others share are addressed with their `owner`.
    `store_address` is shown in the Temporal UI. `limited_models` are the models with a rate limit:
    their steps go straight to the models' own task queues. `code_folder` has the modules of the
    program's own tools: a worker of `perdure dev` imports them from there. Of the conversations
    whose workflows this and other clients with a `session_limit` start, so many work at once: one
    more suspends the least recently active, which goes on with its next message. `secret_keys`
    encrypt the secrets that are handed in, as the setting of that name does. What it starts takes
    part in the `experiments`. The `settings` have the installation's named agents.
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
        session_limit: int | None = None,
        secret_keys: SecretStr | None = None,
        experiments: Mapping[str, Experiment] | None = None,
        settings: Settings | None = None,
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
        self.session_limit = session_limit
        self.secret_keys = secret_keys
        self.experiments = dict(experiments or {})
        self.settings = settings
        self._cache = connection.EntryCache(16 * 1024 * 1024)
        self._lists = connection.ConversationLists(store)
        known = None if search_attributes == "auto" else False
        self._attributes = connection.AttributeCheck(temporal, known)

    def as_user(self, user_id: str) -> Client:
        """Return the client of another user, which shares the connections and the cache."""
        client = copy(self)
        client.user_id = user_id
        return client

    def with_session_limit(self, limit: int | None) -> Client:
        """Return this client with another `session_limit`; None counts nothing."""
        client = copy(self)
        client.session_limit = limit
        return client

    @classmethod
    def connect(cls, settings: Settings | None = None) -> Connecting[Client]:
        """Connect by the settings; without any, by PERDURE_*, `perdure.toml` or `perdure dev`.

        Write `client = await Client.connect()`, or `async with Client.connect() as client`, which
        closes it. Given settings are the only ones used, but for TEMPORAL_* and AWS_*. A `perdure
        dev` that runs in the data folder is used if no store is set. Where a gateway is set, the
        client is an `HttpClient`, which has these methods and neither `temporal` nor `store`.
        Raises Unreachable, Invalid.
        """
        return Connecting(lambda: _connect(settings))

    async def close(self) -> None:
        """Close the connections to the store; the client is of no use afterwards."""
        await self.store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(
        self,
        text: str | None,
        spec: Agent | Mapping[str, Any] | str,
        conversation_id: str | None = None,
        message_id: str | None = None,
        images: Sequence[Image] = (),
        title: str | None = None,
        replay: RecordedEvents | None = None,
    ) -> Conversation:
        """Start a conversation with its first message; without one the agent waits for it.

        The agent is an `Agent`, the name of one, or `{"extends": NAME, …}` with fields that are
        stronger than that one's: then the user's settings and the installation's count, too.
        `images` are http addresses, files, bytes, or `data:image/…` with the image itself. The
        answers in the events of `replay` come before those of the model: tools are called anew.
        Raises Invalid, also for a budget where a model's price is neither its own nor litellm's.
        """
        if conversation_id is None:
            conversation = self._handle(self._connection.new_conversation_id(), is_new=True)
        else:
            conversation = self.conversation(conversation_id)
        own = self._connection.UserAgents(self.store, self.user_id)
        agent = await self._connection.find_agent(spec, self.settings, own)
        if self.experiments:
            from perdure.client.experiments import apply_experiments  # slow

            agent = apply_experiments(agent, self.experiments, self.user_id, conversation.id)
        await conversation.start(text, agent, message_id, images, title, replay)
        return conversation

    def conversation(self, conversation_id: str, owner: str | None = None) -> Conversation:
        """Return the handle of a conversation, existing or not. Raises Invalid for a bad id.

        `owner` is another user, who has granted access to the conversation; without a grant it is
        as if it did not exist.
        """
        return self._handle(conversation_id, owner)

    def _handle(
        self, conversation_id: str, owner: str | None = None, is_new: bool = False
    ) -> Conversation:
        connection = self._connection
        log = connection.open_conversation_log(
            self.store, self.user_id, conversation_id, owner, self._cache
        )
        address = connection.WorkflowAddress.of_conversation(log.user_id, conversation_id)
        if is_new:
            address.former_id = None
        workflow = connection.ConversationWorkflow(
            self.temporal,
            log,
            self.task_queue,
            address,
            self.has_search_attributes,
            self.store_address,
            self.model_queues,
            self.code_folder,
            self.session_limit,
        )
        conversation: Conversation = connection.Conversation(workflow)
        return conversation

    async def list_conversations(self, limit: int = 20) -> list[str]:
        """List the ids of conversations, the newest first."""
        return await self._connection.list_conversations(self.store, self.user_id, limit)

    async def find_conversations(
        self,
        limit: int = 50,
        cursor: str | None = None,
        *,
        app: str | None = None,
        status: Status | None = None,
        agent: str | None = None,
        tag: str | None = None,
        text: str | None = None,
        active: bool = False,
        hidden: bool = False,
    ) -> Page:
        """Find conversations, those that were last at work first, a page of at most 100 at a time.

        `text` has words of the title, `app` is the name of an application. `active` leaves out
        those that are closed; `hidden` lists also those whose start says that lists leave them out.
        The page's `next_cursor` asks for the following one. Raises Invalid for a bad cursor.
        """
        lists = self._connection
        wanted = lists.ListFilter(status, tag, text, "", app, agent, active, hidden)
        limit = lists.check_page_size(limit)
        page: Page = await self._lists.read_page(self, limit, cursor, wanted)
        return page

    async def list_shared(self, limit: int = 20) -> list[Shared]:
        """List conversations that others share with the user, the newest first."""
        connection = self._connection
        shared: list[Shared] = await connection.list_shared(
            self.store, self.user_id, "conversation", limit
        )
        return shared

    async def fork(
        self,
        conversation_id: str,
        at: int | None = None,
        model: str | None = None,
        owner: str | None = None,
    ) -> Fork[Conversation]:
        """Fork a conversation after slot `at`, by default the last one.

        The conversation may be running, and is not disturbed. The fork uses `model` if it is
        given. A closed conversation is forked just before it was closed. One of another `owner`
        needs the grant `read`; the fork is one's own. Raises Invalid, NotFound.
        """
        return await self._connection.fork(self, conversation_id, at, model, owner)

    async def ask(
        self,
        conversation_id: str,
        question: str,
        max_wait: float | None = None,
        owner: str | None = None,
    ) -> AskResponse:
        """Ask the agent a question about the conversation so far, and return its answer.

        Neither enters the log. Raises Invalid, NotFound, Unreachable, Conflict if the model gives
        no answer, and TimedOut after `max_wait` seconds.
        """
        return await self._connection.ask(self, conversation_id, question, max_wait, owner)

    async def put_secret(self, name: str, value: str, description: str = "") -> None:
        """Hand a secret in for agents that name it; they are told the description.

        The store has the value encrypted, and nothing returns it. Raises Invalid, also where no
        `secret_keys` are set.
        """
        await self._vault().put(name, value, description)

    async def list_secrets(self) -> list[Secret]:
        """List the secrets that the user has handed in, by name, without their values."""
        secrets: list[Secret] = await self._vault().list_secrets()
        return secrets

    async def remove_secret(self, name: str) -> None:
        """Remove a secret of the user: no later command has it. Raises NotFound."""
        await self._vault().remove(name)

    def _vault(self) -> Vault:
        vault: Vault = self._connection.open_vault(self.store, self.user_id, self.secret_keys)
        return vault

    async def has_search_attributes(self) -> bool:
        """Tell whether Temporal knows our search attributes; the answer is cached."""
        known: bool = await self._attributes.ask()
        return known


async def _connect(settings: Settings | None) -> Client:
    from perdure.client import connection, find_connection  # slow

    if (gateway := find_connection.find_gateway(settings)) is not None:
        return cast("Client", await HttpClient.connect(gateway))
    settings, store, address = await find_connection.find_connection(settings)
    return Client(
        store=store,
        temporal=await connection.connect(address, settings.payload_keys, quiet=True),
        user_id=settings.user,
        task_queue=settings.task_queue,
        search_attributes=settings.search_attributes,
        store_address=settings.store,
        limited_models=settings.model_rates,
        code_folder=settings.code,
        secret_keys=settings.secret_keys,
        experiments=settings.experiments,
        settings=settings,
    )
