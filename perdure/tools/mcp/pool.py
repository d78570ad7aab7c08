"""The pool of a worker's open sessions with MCP servers."""

import asyncio
import importlib
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from perdure.agent.spec import McpServer
from perdure.tools.mcp.failures import RequestUndelivered, SessionLost, SessionNotStarted
from perdure.tools.terminal import inherited_environment

if TYPE_CHECKING:
    from perdure.tools.mcp.session import McpSession
    from perdure.tools.mcp.stdio import StderrTail

Result = TypeVar("Result")


@dataclass(frozen=True)
class SessionTarget:
    """The conversation, its workspace and the server that a session is for."""

    conversation_id: str
    workspace: Path
    server: McpServer

    @property
    def key(self) -> tuple[str, str, str]:
        return self.conversation_id, str(self.workspace), self.server.model_dump_json()


@dataclass(frozen=True)
class _PooledSession:
    session: "McpSession"
    stderr: "StderrTail | None"


class SessionPool:
    """A pool of `limit` sessions, besides busy ones; each closes after `idle` unused seconds."""

    def __init__(self, limit: int, idle: float) -> None:
        self._limit, self._idle = limit, idle
        # Least recently used first.
        self._pooled: dict[tuple[str, str, str], _PooledSession] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def open_count(self) -> int:
        return sum(not pooled.session.lost for pooled in self._pooled.values())

    def is_open(self, target: SessionTarget) -> bool:
        pooled = self._pooled.get(target.key)
        return pooled is not None and not pooled.session.lost

    async def request(
        self,
        target: SessionTarget,
        operation: "Callable[[McpSession], Awaitable[Result]]",
        repeatable: bool = True,
    ) -> Result:
        """Run `operation` in the target's session; retry once in a new one if that is lost.

        An operation that may have reached the server is retried only if it is `repeatable`. Raises
        McpFailure.
        """
        try:
            return await operation(await self._open_session(target))
        except (RequestUndelivered, SessionLost) as error:
            if isinstance(error, SessionLost) and not repeatable:
                raise
        return await operation(await self._open_session(target))

    def close_conversation(self, conversation_id: str) -> None:
        """Close the sessions of a conversation."""
        for key in [key for key in self._pooled if key[0] == conversation_id]:
            self._pooled.pop(key).session.close()

    async def close(self) -> None:
        """Close every session, and wait until the servers that were started are gone."""
        while self._pooled:
            self._pooled.popitem()[1].session.close()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _open_session(self, target: SessionTarget) -> "McpSession":
        # Imported late, in a thread: few workers need the MCP library, and it loads slowly.
        await asyncio.to_thread(importlib.import_module, "perdure.tools.mcp.session")
        pooled = self._pooled.pop(target.key, None)
        if pooled is None or pooled.session.lost:
            pooled = self._start(target)
        self._pooled[target.key] = pooled
        self._make_room()
        try:
            await pooled.session.wait_until_open()
        except SessionNotStarted as error:
            stderr = " ".join(str(pooled.stderr or "").split())
            note = f"; its last words were: {stderr}" if stderr else ""
            raise SessionNotStarted(f"{error}{note}") from error
        return pooled.session

    def _start(self, target: SessionTarget) -> _PooledSession:
        # Imported here to keep an idle worker small; `_open_session` has loaded them by now.
        from perdure.tools.mcp.http import http_transport
        from perdure.tools.mcp.session import McpSession
        from perdure.tools.mcp.stdio import StderrTail, stdio_transport

        server, stderr = target.server, None
        if server.url:
            transport = http_transport(server.url, _read_variables(server.headers))
        else:
            folder = target.workspace / (server.cwd or "")
            if not folder.is_dir():
                raise SessionNotStarted(f"its `cwd` {str(folder)!r} is not a directory")
            stderr = StderrTail()
            environment = {**inherited_environment(), **_read_variables(server.env)}
            transport = stdio_transport(
                [str(server.command), *server.args], folder, environment, stderr
            )
        session = McpSession(transport, server.start_timeout, self._idle)
        self._tasks.add(session.task)
        session.task.add_done_callback(self._tasks.discard)
        return _PooledSession(session, stderr)

    def _make_room(self) -> None:
        for key in [key for key, pooled in self._pooled.items() if pooled.session.lost]:
            del self._pooled[key]
        *others, _ = self._pooled.items()
        unused = [key for key, pooled in others if not pooled.session.busy]
        for key in unused[: max(0, len(self._pooled) - self._limit)]:
            self._pooled.pop(key).session.close()


def _read_variables(names: dict[str, str]) -> dict[str, str]:
    for name, variable in names.items():
        if variable not in os.environ:
            raise SessionNotStarted(
                f"its `{name}` is to come from the worker's environment variable {variable}, "
                "which is not set: set it and start the worker again"
            )
    return {name: os.environ[variable] for name, variable in names.items()}
