"""The methods of the protocol: each takes the params of a request, and returns its result."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import TypeAlias

from perdure.acp import requests
from perdure.acp.content import read_prompt
from perdure.acp.modes import list_modes, read_mode
from perdure.acp.peer import Peer
from perdure.acp.projection import find_stop_reason, format_usage
from perdure.acp.rpc import INTERNAL_ERROR, Message, RpcError
from perdure.acp.session import Outcome, Session
from perdure.acp.sessions import Sessions, require_free
from perdure.acp.slash_commands import list_commands, parse_command, run_command
from perdure.acp.start import FOLDER_TAG, Host, find_folder, set_confirmation
from perdure.agent.loop.phase import find_phase
from perdure.api.conversations import Conversation
from perdure.errors import PerdureError

PROTOCOL_VERSION = 1

PAGE_SIZE = 50

CAPABILITIES: Message = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": False},
    "sessionCapabilities": {"list": {}, "resume": {}, "fork": {}, "close": {}, "delete": {}},
}


@dataclass(frozen=True)
class Answer:
    """The result of a request, and what is to be done once it is sent."""

    result: Message
    then: Callable[[], Awaitable[None]] | None = None


Method: TypeAlias = Callable[[Message], Awaitable[Answer]]


class Methods:
    """The methods, for the conversations of a host."""

    def __init__(self, host: Host, peer: Peer) -> None:
        self.sessions = Sessions(host, peer)
        self._host = host
        self.requests: dict[str, Method] = {
            "initialize": self.initialize,
            "session/new": self.create_session,
            "session/load": self.load_session,
            "session/resume": self.resume_session,
            "session/fork": self.fork_session,
            "session/list": self.list_sessions,
            "session/close": self.close_session,
            "session/delete": self.delete_session,
            "session/set_mode": self.set_mode,
            "session/prompt": self.prompt,
        }

    async def initialize(self, params: Message) -> Answer:
        asked = requests.Initialize.model_validate(params)
        info = {"name": "perdure", "title": "perdure", "version": version("perdure")}
        return Answer(
            {
                "protocolVersion": min(asked.protocolVersion, PROTOCOL_VERSION),
                "agentCapabilities": CAPABILITIES,
                "agentInfo": info,
                "authMethods": [],
            }
        )

    async def create_session(self, params: Message) -> Answer:
        session = await self.sessions.create(requests.NewSession.model_validate(params))
        return _answer_with_id(session)

    async def load_session(self, params: Message) -> Answer:
        opened = requests.OpenSession.model_validate(params)
        session, replay = await self.sessions.open(opened, tell=True)
        session.go_on_telling(replay)
        return _answer_opened(session)

    async def resume_session(self, params: Message) -> Answer:
        opened = requests.OpenSession.model_validate(params)
        session, replay = await self.sessions.open(opened, tell=False)
        session.go_on_telling(replay)
        return _answer_opened(session)

    async def fork_session(self, params: Message) -> Answer:
        fork = self.sessions.fork(requests.OpenSession.model_validate(params))
        return _answer_with_id(await self.sessions.finish(fork))

    async def list_sessions(self, params: Message) -> Answer:
        asked = requests.ListSessions.model_validate(params)
        client = await self._host.connect()
        tag = None if asked.cwd is None else FOLDER_TAG + asked.cwd
        page = await client.find_conversations(PAGE_SIZE, asked.cursor, tag=tag)
        sessions = [describe_session(item, self.sessions.folder_of(item.id)) for item in page.items]
        result: Message = {"sessions": sessions}
        return Answer({**result, **({"nextCursor": c} if (c := page.next_cursor) else {})})

    async def close_session(self, params: Message) -> Answer:
        """Close a session; what is at work in it is interrupted."""
        name = requests.NamedSession.model_validate(params).sessionId
        self.sessions.find(name)
        self.sessions.leave(name)
        return Answer({})

    async def delete_session(self, params: Message) -> Answer:
        """Close a conversation, and hide it from lists; `perdure rm` deletes what is stored."""
        name = requests.NamedSession.model_validate(params).sessionId
        session = self.sessions.leave(name)
        if session is None or session.agent is None:
            conversation = await self.sessions.find_conversation(name)
            await self.sessions.finish(conversation.delete())
        return Answer({})

    async def set_mode(self, params: Message) -> Answer:
        asked = requests.SetMode.model_validate(params)
        session = self.sessions.find(asked.sessionId)
        spec = session.agent or session.state.spec
        confirmation = read_mode(asked.modeId, spec.confirmation if spec is not None else None)
        if session.agent is not None:
            session.agent = set_confirmation(session.agent, confirmation)
        else:
            changes = {"confirmation": confirmation.model_dump(mode="json")}
            await self.sessions.finish(session.conversation.configure(changes))
        session.mode = asked.modeId
        return Answer({})

    async def prompt(self, params: Message) -> Answer:
        asked = requests.SendPrompt.model_validate(params)
        session = self.sessions.find(asked.sessionId)
        require_free(session)
        message = read_prompt(asked.prompt)
        session.cancelled = cancelled = asyncio.Event()
        try:
            if (command := parse_command(message.text)) is not None:
                await self.sessions.finish(run_command(session, *command))
                return Answer({"stopReason": "end_turn"})
            reader = await self.sessions.finish(session.begin(message))
            return Answer(end_prompt(await session.run(reader, cancelled), session))
        except (RpcError, PerdureError):
            if not cancelled.is_set():
                raise
            return Answer({"stopReason": "cancelled"})  # which is what the editor waits for
        finally:
            session.cancelled = None

    def cancel(self, params: Message) -> None:
        """Cancel the prompt at work, whose answer says so; without one there is nothing to do."""
        session = self.sessions.find(requests.NamedSession.model_validate(params).sessionId)
        if session.cancelled is not None:
            session.cancelled.set()


def end_prompt(outcome: Outcome, session: Session) -> Message:
    """Return the result of a prompt. Raises RpcError where its turn has failed."""
    ended, failed = outcome.ended, outcome.failed
    if ended is None:
        return {"stopReason": "cancelled"}
    was_refused = find_phase(session.state) == "rejected"
    reason = find_stop_reason(ended, failed, was_refused=was_refused)
    if reason is None:
        code = failed.code if failed is not None else ended.status
        detail = failed.detail if failed is not None else ended.reason or "The turn failed."
        raise RpcError(INTERNAL_ERROR, f"{code}: {detail}", {"code": code, "detail": detail})
    return {"stopReason": reason, "usage": format_usage(outcome.usage)}


def describe_session(item: Conversation, folder: str | None) -> Message:
    """Return a conversation as lists of sessions have it; what is not known is left out.

    It has a `folder` where it is open here: of one that has just begun, lists know no tags yet.
    """
    status = item.status
    cwd = folder or find_folder(status.tags, status.workspace)
    fields: Message = {"sessionId": item.id, "cwd": cwd}
    if status.title:
        fields["title"] = status.title
    if item.updated:
        fields["updatedAt"] = item.updated
    return fields


def _answer_with_id(session: Session) -> Answer:
    opened = _answer_opened(session)
    return Answer({"sessionId": session.id, **opened.result}, opened.then)


def _answer_opened(session: Session) -> Answer:
    async def tell_commands() -> None:
        await session.update(list_commands())

    return Answer({"modes": list_modes(session.mode)}, tell_commands)
