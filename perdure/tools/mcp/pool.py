"""The pool of a worker's open sessions with MCP servers."""

import asyncio
import importlib
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from perdure.agent.extensions import McpServer
from perdure.tools.mcp.call_trace import peer_of
from perdure.tools.mcp.failures import RequestUndelivered, SessionLost, SessionNotStarted
from perdure.tools.terminal import inherited_environment

if TYPE_CHECKING:
    from perdure.tools.mcp.session import McpSession

MAX_SESSIONS = 64
"""Sessions of a worker; beyond it, the least recently used one is closed."""
IDLE_TIMEOUT = 900.0
"""Seconds without a call after which a session is closed."""

VARIABLE_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

Result = TypeVar("Result")


@dataclass(frozen=True)
class SessionTarget:
    """The conversation, its workspace and the server that a session is for."""

    conversation: str
    """The prefix of its log in the store: several users may have conversations of one id."""
    workspace: Path
    server: McpServer

    @property
    def key(self) -> tuple[str, str, str]:
        return self.conversation, str(self.workspace), self.server.model_dump_json()


class SessionPool:
    """A pool of `limit` sessions, besides busy ones; each closes after `idle` unused seconds."""

    def __init__(self, limit: int = MAX_SESSIONS, idle: float = IDLE_TIMEOUT) -> None:
        self._limit, self._idle = limit, idle
        # Least recently used first.
        self._sessions: dict[tuple[str, str, str], McpSession] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def open_count(self) -> int:
        """The number of open sessions."""
        return sum(not session.lost for session in self._sessions.values())

    def is_open(self, target: SessionTarget) -> bool:
        session = self._sessions.get(target.key)
        return session is not None and not session.lost

    async def request(
        self,
        target: SessionTarget,
        operation: "Callable[[McpSession], Awaitable[Result]]",
        repeatable: bool = True,
    ) -> Result:
        """Run `operation` in the target's session; retry once in a new one if that is lost.

        Once it may have reached the server, only a `repeatable` one is retried. Raises McpFailure.
        """
        try:
            return await operation(await self._open_session(target))
        except (RequestUndelivered, SessionLost) as error:
            if isinstance(error, SessionLost) and not repeatable:
                raise
        return await operation(await self._open_session(target))

    def close_conversation(self, conversation: str) -> None:
        """Close the sessions of a conversation."""
        for key in [key for key in self._sessions if key[0] == conversation]:
            self._sessions.pop(key).close()

    async def close(self) -> None:
        """Close every session, and wait until the servers that were started are gone."""
        while self._sessions:
            self._sessions.popitem()[1].close()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _open_session(self, target: SessionTarget) -> "McpSession":
        # Imported late, in a thread: few workers need the MCP library, and it loads slowly.
        await asyncio.to_thread(importlib.import_module, "perdure.tools.mcp.session")
        session = self._sessions.pop(target.key, None)
        if session is None or session.lost:
            session = self._start(target)
        self._sessions[target.key] = session
        self._make_room()
        await session.wait_until_open()
        return session

    def _start(self, target: SessionTarget) -> "McpSession":
        # Imported here to keep an idle worker small; `_open_session` has loaded them by now.
        from perdure.tools.mcp.session import McpSession
        from perdure.tools.mcp.transports import StderrTail, http_transport, stdio_transport

        server, stderr, peer = target.server, StderrTail(), peer_of(target.server.url)
        if server.url:
            headers = _read_values(server.headers, server.header_values)
            transport = http_transport(server.url, headers, peer)
        else:
            folder = target.workspace / (server.cwd or "")
            if not folder.is_dir():
                raise SessionNotStarted(f"its `cwd` {str(folder)!r} is not a directory")
            own = _read_values(server.env, server.env_values)
            environment = {**inherited_environment(), **own}
            command = [str(server.command), *server.args]
            transport = stdio_transport(command, folder, environment, stderr)
        session = McpSession(transport, server.start_timeout, self._idle, peer, stderr)
        self._tasks.add(session.task)
        session.task.add_done_callback(self._tasks.discard)
        return session

    def _make_room(self) -> None:
        for key in [key for key, session in self._sessions.items() if session.lost]:
            del self._sessions[key]
        *others, _ = self._sessions.items()
        unused = [key for key, session in others if not session.busy]
        for key in unused[: max(0, len(self._sessions) - self._limit)]:
            self._sessions.pop(key).close()


def _read_values(variables: Mapping[str, str], texts: Mapping[str, str]) -> dict[str, str]:
    """Return the values by name: those of variables, and texts with the variables named in them.

    Raises SessionNotStarted.
    """
    values = {name: _read_variable(name, variable) for name, variable in variables.items()}
    for name, text in texts.items():
        values[name] = VARIABLE_REFERENCE.sub(partial(_expand, name), text)
    return values


def _expand(name: str, reference: re.Match[str]) -> str:
    return _read_variable(name, reference[1])


def _read_variable(name: str, variable: str) -> str:
    if variable not in os.environ:
        raise SessionNotStarted(
            f"its `{name}` is to come from the worker's environment variable {variable}, "
            "which is not set: set it and start the worker again"
        )
    return os.environ[variable]
