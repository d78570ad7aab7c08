"""The sessions that are open in this process: how they are opened, found and left."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from perdure.acp.modes import find_mode
from perdure.acp.peer import Peer
from perdure.acp.projection import Projection
from perdure.acp.replay import Replay
from perdure.acp.requests import NewSession, OpenSession
from perdure.acp.rpc import INVALID_REQUEST, RpcError
from perdure.acp.session import Session
from perdure.acp.start import Host, add_servers, set_folder, with_folder
from perdure.client.ids import new_conversation_id
from perdure.client.protocol import ConversationHandle
from perdure.errors import Invalid, NotFound
from perdure.wording import shorten

T = TypeVar("T")

FINISH_SECONDS = 10.0
"""Seconds for what was begun, such as the sending of a message, before the process ends."""


class Sessions:
    """The open sessions, by their ids, which are those of their conversations."""

    def __init__(self, host: Host, peer: Peer) -> None:
        self._host = host
        self._peer = peer
        self._open: dict[str, Session] = {}
        self._unfinished: set[asyncio.Task[Any]] = set()

    def find(self, session_id: str) -> Session:
        """Return an open session. Raises NotFound."""
        session = self._open.get(session_id)
        if session is None:
            hint = "Open it with session/load or session/resume."
            raise NotFound(f"The session {shorten(session_id)} is not open.", hint)
        return session

    def folder_of(self, session_id: str) -> str | None:
        """Return the folder of a session; None if it is not open."""
        session = self._open.get(session_id)
        return session.projection.cwd if session is not None else None

    async def create(self, params: NewSession) -> Session:
        """Make a session whose conversation begins with its first prompt. Raises ClientError."""
        client = await self._host.connect()
        agent = await self._host.build_agent(params.cwd)
        agent = set_folder(agent, params.cwd)
        agent = add_servers(agent, params.mcpServers, self._host.is_local)
        conversation = client.conversation(new_conversation_id())
        session = await self._make(conversation, params.cwd)
        session.agent, session.mode = agent, find_mode(agent.confirmation)
        self._open[session.id] = session
        return session

    async def open(self, params: OpenSession, tell: bool) -> tuple[Session, Replay]:
        """Open a session from its log; with `tell` its editor is told of all that it has.

        Raises NotFound, RpcError while a prompt is at work, and the errors of the store.
        """
        known = self._open.get(params.sessionId)
        if known is not None:
            require_free(known)
            known.stop_telling()
        conversation = await self.find_conversation(params.sessionId)
        session = await self._make(conversation, params.cwd)
        replay = await session.replay(session.update if tell else None)
        self._open[session.id] = session
        return session, replay

    async def fork(self, params: OpenSession) -> Session:
        """Make a session that has the log of another one so far. Raises NotFound."""
        parent = await self.find_conversation(params.sessionId)
        client = await self._host.connect()
        fork = await client.fork(parent.id)
        session = await self._make(fork.conversation, params.cwd)
        await session.replay(None)
        tags = session.state.spec.tags if session.state.spec is not None else ()
        if (changed := with_folder(tags, params.cwd)) != tags:
            await fork.conversation.note(tags=changed)
        self._open[session.id] = session
        return session

    async def find_conversation(self, session_id: str) -> ConversationHandle:
        """Return a conversation that exists. Raises NotFound, Unreachable."""
        client = await self._host.connect()
        try:
            conversation = client.conversation(session_id)
        except Invalid as error:
            raise NotFound.for_conversation(session_id) from error
        if not await conversation.exists():
            raise NotFound.for_conversation(session_id)
        return conversation

    def leave(self, session_id: str) -> Session | None:
        """Close a session, if it is open; its prompt is cancelled."""
        session = self._open.pop(session_id, None)
        if session is not None:
            session.stop_telling()
            if session.cancelled is not None:
                session.cancelled.set()
        return session

    async def finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Await work that goes on to its end even if this process is told to end."""
        task = asyncio.create_task(work)
        self._unfinished.add(task)
        task.add_done_callback(self._unfinished.discard)
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Leave all sessions, once what was begun is sent; their turns go on."""
        if self._unfinished:
            await asyncio.wait(self._unfinished, timeout=FINISH_SECONDS)
        for session in self._open.values():
            session.stop_telling()

    async def _make(self, conversation: ConversationHandle, cwd: str) -> Session:
        client = await self._host.connect()
        return Session(client, conversation, self._peer, Projection(cwd))


def require_free(session: Session) -> None:
    """Raise RpcError while a prompt is at work."""
    if session.cancelled is not None:
        sentence = "A prompt of this session is at work: wait for its end, or cancel it."
        raise RpcError(INVALID_REQUEST, sentence)
