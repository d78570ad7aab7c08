"""The shells of the conversations on this worker."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from perdure.events.actions import TerminalAction
from perdure.events.tools import AgentErrorEvent, ObservationEvent
from perdure.sandbox.sandbox import SandboxUnusable
from perdure.storage.errors import StoreError
from perdure.tools.shell.session import ShellSession
from perdure.tools.shell.shell import BASH, Program
from perdure.tools.shell.words import RESET, RESTARTED
from perdure.tools.tool import Context, ToolFailed

MAX_SESSIONS = 64
"""Beyond it, the least recently used shell is closed."""
IDLE_TIMEOUT = 3600.0
"""Seconds without a call after which a shell is closed."""
MAX_ENTRIES_SEARCHED = 256
"""Older uses of a shell do not matter: the model no longer relies on its state."""
_ENTRIES_PER_READ = 32
"""Few, because the newest entries mostly suffice."""


@dataclass
class SessionSlot:
    """A conversation's slot, held by one call at a time, with its session if there is one."""

    session: ShellSession | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0
    stop_idle_timer: Callable[[], None] = lambda: None


class ShellSessions:
    """At most one session of a tool per conversation; evicts idle and least recently used ones."""

    def __init__(self, limit: int = MAX_SESSIONS, idle: float = IDLE_TIMEOUT) -> None:
        self._limit = limit
        self._idle = idle
        self._slots: dict[tuple[str, str], SessionSlot] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def slot(self, conversation: str, tool: str = "terminal") -> AsyncIterator[SessionSlot]:
        """Hold the slot of a conversation exclusively: `conversation` is the prefix of its log."""
        slot = self._slots.pop((conversation, tool), None) or SessionSlot()
        self._slots[conversation, tool] = slot  # least recently used first
        slot.users += 1
        slot.stop_idle_timer()
        self._make_room()
        try:
            async with slot.lock:
                yield slot
        finally:
            slot.users -= 1
            if not slot.users:
                loop = asyncio.get_running_loop()
                idle_timer = loop.call_later(self._idle, self._evict, conversation, tool)
                slot.stop_idle_timer = idle_timer.cancel

    async def close_session(self, *conversations: str) -> None:
        """Close the sessions of conversations, and wait until all their processes are gone."""
        for conversation, tool in [key for key in self._slots if key[0] in conversations]:
            self._evict(conversation, tool)
        await asyncio.gather(*self._closing)

    async def close(self) -> None:
        """Close every session, and wait until all their processes are gone."""
        await self.close_session(*(conversation for conversation, _ in self._slots))

    def _make_room(self) -> None:
        unused = [name for name, seat in self._slots.items() if not seat.users]
        for name in unused[: max(0, len(self._slots) - self._limit)]:
            self._evict(*name)

    def _evict(self, conversation: str, tool: str) -> None:
        slot = self._slots.pop((conversation, tool), None) or SessionSlot()
        slot.stop_idle_timer()
        if slot.session is not None:
            closing = asyncio.create_task(slot.session.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)


async def acquire_session(
    action: TerminalAction, slot: SessionSlot, context: Context, environment: Mapping[str, str]
) -> tuple[ShellSession, str]:
    """Return the session to use, and a note for the model if a new shell replaces another."""
    previous = slot.session
    if previous is not None:
        await previous.wait_for_interrupt()
        # The model may not have seen yet that a command ended together with its shell.
        usable = not previous.closed or (action.is_input and previous.command is not None)
        if usable and not action.reset and previous.network == context.network:
            return previous, ""
        await previous.close()
    is_lost = previous is not None or await _had_earlier_shell(context)
    slot.session = None
    slot.session = session = await start_session(context, environment)
    return session, RESET if action.reset else RESTARTED if is_lost else ""


async def start_session(
    context: Context, environment: Mapping[str, str], program: Program = BASH
) -> ShellSession:
    """Start a session in the conversation's workspace and sandbox. Raises ToolFailed, OSError."""
    try:
        await asyncio.to_thread(context.sandbox.prepare, context.workspace)
    except SandboxUnusable as error:
        raise ToolFailed(f"The shell could not be started: {error}") from error
    confinement = (context.sandbox, context.network)
    masker = context.secrets.masker()
    return ShellSession(context.workspace, environment, masker, *confinement, program)


async def _had_earlier_shell(context: Context) -> bool:
    """Return whether the log shows a shell of this conversation, lost with another worker."""
    end, last = context.seq, max(0, context.seq - MAX_ENTRIES_SEARCHED)
    with suppress(StoreError):  # the note is not worth failing the command
        while end > last:
            first = max(last, end - _ENTRIES_PER_READ)
            entries = await context.log.read(first, end - first)
            if any(_used_shell(entry.event) for entry in entries):
                return True
            end = first
    return False


def _used_shell(event: object) -> bool:
    if isinstance(event, AgentErrorEvent):
        ran = event.classification not in ("unknown_tool", "bad_arguments")
        return ran and event.tool_name == "terminal"
    return isinstance(event, ObservationEvent) and event.tool_name == "terminal"
