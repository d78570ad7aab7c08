"""The shell of a conversation: the one that it has, or a new one."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from events.actions import TerminalAction
from events.tools import AgentErrorEvent, ObservationEvent
from sandbox.sandbox import Unusable
from storage.errors import StoreError
from tools.shell.session import Session
from tools.shell.sessions import Seat
from tools.shell.words import RESET, RESTARTED
from tools.tool import Context, ToolFailed

LOOKED_AT = 256
"""Events in which an earlier shell is looked for: on what came before, nobody counts any more."""

_AT_ONCE = 32
"""Of them, read in one go: mostly the first few tell."""


async def session_for(
    action: TerminalAction, seat: Seat, context: Context, environment: Mapping[str, str]
) -> tuple[Session, str]:
    """The session to use, and what the model has to know of where it comes from."""
    old = seat.session
    if old is not None:
        await old.ready()
        # Of a command that ended with its shell, the end may not have been told yet.
        going = not old.over or (action.is_input and old.call is not None)
        if going and not action.reset and old.network == context.network:
            return old, ""
        await old.close()
    lost = old is not None or await used_before(context)
    seat.session = None
    await asyncio.to_thread(_given, context)
    where = (context.sandbox, context.network)
    masker = context.secrets.masker()
    seat.session = session = Session(context.workspace, environment, masker, *where)
    return session, RESET if action.reset else RESTARTED if lost else ""


def _given(context: Context) -> None:
    """Let the tools' user have the workspace, where that is not the worker's. Raises ToolFailed."""
    try:
        context.sandbox.prepare(context.workspace)
    except Unusable as error:
        raise ToolFailed(f"The shell could not be started: {error}") from error


async def used_before(context: Context) -> bool:
    """Whether the log tells of a shell of this conversation, which must have been elsewhere."""
    end, last = context.seq, max(0, context.seq - LOOKED_AT)
    with suppress(StoreError):  # no reason not to run the command
        while end > last:
            first = max(last, end - _AT_ONCE)
            if any(_used(entry.event) for entry in await context.log.read(first, end - first)):
                return True
            end = first
    return False


def _used(event: object) -> bool:
    if isinstance(event, AgentErrorEvent):
        ran = event.classification not in ("unknown_tool", "bad_arguments")
        return ran and event.tool_name == "terminal"
    return isinstance(event, ObservationEvent) and event.tool_name == "terminal"
