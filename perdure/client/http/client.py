"""The client of a gateway."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from perdure.client.connecting import Connecting
from perdure.errors import Invalid

if TYPE_CHECKING:
    from perdure.agent.loop.ask import AskResponse
    from perdure.agent.loop.status import Status
    from perdure.agent.spec import Agent
    from perdure.api.conversations import Conversation, Page
    from perdure.api.keys import Me
    from perdure.api.secrets import Secret
    from perdure.client.fork_handle import Fork
    from perdure.client.http.conversation import HttpConversation
    from perdure.client.images import Image
    from perdure.client.recording import RecordedEvents
    from perdure.settings.settings import Settings
    from perdure.storage.shared import Shared

MAX_PAGE = 100
"""Conversations that are asked for at once."""


class HttpClient:
    """The client of one user of a gateway, with the methods of `Client` and a key alone.

    Write `async with HttpClient(url, key) as client`, or `await HttpClient.connect()`, which reads
    PERDURE_GATEWAY and PERDURE_GATEWAY_KEY. Plain HTTP, which shows the key to the network, is for
    this machine alone, unless it is allowed by `plain_http`. Raises Invalid.
    """

    def __init__(self, url: str, key: str, plain_http: bool = False) -> None:
        from perdure.client.http import parts  # slow

        self._parts = parts
        self.connection = parts.Connection(url, key, plain_http)
        self._me: Me | None = None

    def __repr__(self) -> str:
        return f"HttpClient({self.connection.url!r})"

    @classmethod
    def connect(cls, settings: Settings | None = None) -> Connecting[HttpClient]:
        """Connect to the gateway of the settings; without any, of PERDURE_* and `perdure.toml`.

        Write `client = await HttpClient.connect()`, or `async with HttpClient.connect() as client`,
        which closes it. Raises Unreachable, Invalid, and Forbidden for a key that is none.
        """
        return Connecting(lambda: _connect(settings))

    @property
    def user_id(self) -> str:
        """The user whose key it is."""
        if self._me is None:
            hint = "Write `async with HttpClient(url, key) as client`."
            raise Invalid("The client has not asked the gateway yet who it is.", hint)
        return self._me.user_id

    async def me(self) -> Me:
        """Ask who the key belongs to, and what it may do. Raises Forbidden, Unreachable."""
        if self._me is None:
            self._me = await self.connection.get("/v1/me", self._parts.Me)
        return self._me

    async def close(self) -> None:
        """Close the connections to the gateway; the client is of no use afterwards."""
        await self.connection.close()

    async def __aenter__(self) -> Self:
        try:
            await self.me()
        except BaseException:
            await self.close()
            raise
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
    ) -> HttpConversation:
        """Start a conversation with its first message; without one the agent waits for it.

        `images` are http addresses, files, bytes, or `data:image/…` with the image itself. The
        answers in the events of `replay` come before those of the model: tools are called anew. The
        agent is what the gateway's installation allows; see `Client.start`. Raises Invalid.
        """
        await self.me()
        conversation = self.conversation(conversation_id or self._parts.new_conversation_id())
        await conversation.start(text, spec, message_id, images, title, replay)
        return conversation

    def conversation(self, conversation_id: str, owner: str | None = None) -> HttpConversation:
        """Return the handle of a conversation, existing or not. Raises Invalid for a bad id.

        `owner` is another user, who has granted access to the conversation; without a grant it is
        as if it did not exist.
        """
        user_id = self.user_id if owner is None else owner
        if owner == self.user_id:
            owner = None
        try:
            return self._parts.HttpConversation(self.connection, user_id, conversation_id, owner)
        except ValueError as error:
            raise Invalid(str(error)) from error

    async def list_conversations(self, limit: int = 20) -> list[str]:
        """List the ids of conversations, the newest first."""
        pages = self._pages("/v1/conversations", limit, order="created")
        return [item.id async for item in pages]

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
        await self.me()
        query = {"app": app, "status": status, "agent": agent, "tag": tag, "text": text}
        return await self.connection.get(
            "/v1/conversations",
            self._parts.Page,
            limit=limit,
            cursor=cursor,
            active=active,
            hidden=hidden,
            **query,
        )

    async def list_shared(self, limit: int = 20) -> list[Shared]:
        """List conversations that others share with the user, the newest first."""
        return [
            self._parts.Shared.model_validate(item, from_attributes=True)
            async for item in self._pages("/v1/shared", limit)
        ]

    async def _pages(self, path: str, limit: int, **query: str) -> AsyncIterator[Conversation]:
        """Yield the conversations of a list, at most `limit`."""
        cursor: str | None = None
        while limit > 0:
            page = await self.connection.get(
                path, self._parts.Page, limit=min(limit, MAX_PAGE), cursor=cursor, **query
            )
            for item in page.items:
                yield item
            limit -= len(page.items)
            if (cursor := page.next_cursor) is None:
                return

    async def fork(
        self,
        conversation_id: str,
        at: int | None = None,
        model: str | None = None,
        owner: str | None = None,
    ) -> Fork[HttpConversation]:
        """Fork a conversation after slot `at`, by default the last one.

        The conversation may be running, and is not disturbed. The fork uses `model` if it is
        given. A closed conversation is forked just before it was closed. One of another `owner`
        needs the grant `read`; the fork is one's own. Raises Invalid, NotFound.
        """
        parts = self._parts
        body = parts.build_body(parts.ForkConversation, at=at, model=model)
        path = f"{self.conversation(conversation_id, owner).log.path}/fork"
        shared_by = None if owner == self.user_id else owner
        made = await self.connection.post(path, parts.ForkResult, body, owner=shared_by)
        child = self.conversation(made.conversation_id)
        forked: Fork[HttpConversation] = parts.Fork(child, made.at, await child.state())
        return forked

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
        parts = self._parts
        wait = parts.MAX_ASK_WAIT if max_wait is None else min(max_wait, parts.MAX_ASK_WAIT)
        body = parts.build_body(parts.AskQuestion, question=question, max_wait=wait)
        conversation = self.conversation(conversation_id, owner)
        asked_of = None if owner == self.user_id else owner
        path = f"{conversation.log.path}/ask"
        return await self.connection.post(
            path, parts.AskResponse, body, max_wait=wait, owner=asked_of
        )

    async def put_secret(self, name: str, value: str, description: str = "") -> None:
        """Hand a secret in for agents that name it; they are told the description.

        The store has the value encrypted, and nothing returns it. Raises Invalid, also where the
        gateway has no keys for that.
        """
        parts = self._parts
        body = parts.build_body(parts.PutSecret, value=value, description=description)
        await self.connection.put(parts.secret_path(name), body)

    async def list_secrets(self) -> list[Secret]:
        """List the secrets that the user has handed in, by name, without their values."""
        return list((await self.connection.get("/v1/secrets", self._parts.Secrets)).items)

    async def remove_secret(self, name: str) -> None:
        """Remove a secret of the user: no later command has it. Raises NotFound."""
        await self.connection.delete(self._parts.secret_path(name))


async def _connect(settings: Settings | None) -> HttpClient:
    from perdure.settings.settings import load_settings  # slow

    settings = settings or load_settings()
    if settings.gateway is None:
        hint = "Set PERDURE_GATEWAY to its address, or write `HttpClient(url, key)`."
        raise Invalid("No gateway is set.", hint)
    key = settings.gateway_key.get_secret_value() if settings.gateway_key else ""
    if not key:
        raise Invalid(
            "No key of the gateway is set.",
            "Set PERDURE_GATEWAY_KEY; `perdure key create` makes one.",
        )
    return await HttpClient(settings.gateway, key).__aenter__()
