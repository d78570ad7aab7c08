"""The sessions with servers of the Model Context Protocol that a worker has open."""

import asyncio
import importlib
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from agent.spec import McpServer
from tools.mcp.failures import Interrupted, NotStarted, Undelivered
from tools.terminal import passed_on

if TYPE_CHECKING:
    from tools.mcp.session import Session
    from tools.mcp.stdio import LastWords

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Place:
    """Which conversation has a session with which server, and where it works."""

    conversation_id: str
    workspace: Path
    server: McpServer

    @property
    def key(self) -> tuple[str, str, str]:
        return self.conversation_id, str(self.workspace), self.server.model_dump_json()


@dataclass(frozen=True)
class _Held:
    session: "Session"
    words: "LastWords | None"


class SessionPool:
    """At most `limit` sessions, but for those at work; each ends after `idle` seconds unused."""

    def __init__(self, limit: int, idle: float) -> None:
        self._limit, self._idle = limit, idle
        # In the order in which they were used last.
        self._held: dict[tuple[str, str, str], _Held] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def open(self) -> int:
        return sum(not held.session.lost for held in self._held.values())

    def is_open(self, place: Place) -> bool:
        held = self._held.get(place.key)
        return held is not None and not held.session.lost

    async def ask(
        self,
        place: Place,
        question: "Callable[[Session], Awaitable[Answer]]",
        repeatable: bool = True,
    ) -> Answer:
        """What `question` gives; in a new session, once, where the one that there was is lost.

        A question that may have reached the server is asked again only where it is `repeatable`.
        Raises McpFailure.
        """
        try:
            return await question(await self._session(place))
        except (Undelivered, Interrupted) as error:
            if isinstance(error, Interrupted) and not repeatable:
                raise
        return await question(await self._session(place))

    def end(self, conversation_id: str) -> None:
        """Take leave of the servers of a conversation."""
        for key in [key for key in self._held if key[0] == conversation_id]:
            self._held.pop(key).session.end()

    async def close(self) -> None:
        """End every session; the servers that were started are gone when this returns."""
        while self._held:
            self._held.popitem()[1].session.end()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _session(self, place: Place) -> "Session":
        # Late and aside: only some workers need it, and it takes as long as all the rest of one.
        await asyncio.to_thread(importlib.import_module, "tools.mcp.session")
        held = self._held.pop(place.key, None)
        if held is None or held.session.lost:
            held = self._start(place)
        self._held[place.key] = held
        self._make_room()
        try:
            await held.session.opened()
        except NotStarted as error:
            words = " ".join(str(held.words or "").split())
            said = f"; its last words were: {words}" if words else ""
            raise NotStarted(f"{error}{said}") from error
        return held.session

    def _start(self, place: Place) -> _Held:
        # Here, not above, as an idle worker stays small; `_session` has loaded them by now.
        from tools.mcp.http import http
        from tools.mcp.session import Session
        from tools.mcp.stdio import LastWords, stdio

        server, words = place.server, None
        if server.url:
            transport = http(server.url, _values(server.headers))
        else:
            folder = place.workspace / (server.cwd or "")
            if not folder.is_dir():
                raise NotStarted(f"its `cwd` {str(folder)!r} is not a directory")
            words = LastWords()
            environment = {**passed_on(), **_values(server.env)}
            transport = stdio([str(server.command), *server.args], folder, environment, words)
        session = Session(transport, server.start_timeout, self._idle)
        self._tasks.add(session.task)
        session.task.add_done_callback(self._tasks.discard)
        return _Held(session, words)

    def _make_room(self) -> None:
        for key in [key for key, held in self._held.items() if held.session.lost]:
            del self._held[key]
        *others, _ = self._held.items()
        unused = [key for key, held in others if not held.session.busy]
        for key in unused[: max(0, len(self._held) - self._limit)]:
            self._held.pop(key).session.end()


def _values(names: dict[str, str]) -> dict[str, str]:
    for name, variable in names.items():
        if variable not in os.environ:
            raise NotStarted(
                f"its `{name}` is to come from the worker's environment variable {variable}, "
                "which is not set: set it and start the worker again"
            )
    return {name: os.environ[variable] for name, variable in names.items()}
