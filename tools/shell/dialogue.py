"""The shell of a conversation: the one that it has, or a new one."""

from collections.abc import Mapping
from contextlib import suppress

from events.actions import TerminalAction
from events.tools import AgentErrorEvent, ObservationEvent
from storage.errors import StoreError
from tools.shell.session import Session
from tools.shell.sessions import Seat
from tools.shell.words import RESET, RESTARTED
from tools.tool import Context

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
        if not action.reset and (not old.over or (action.is_input and old.call is not None)):
            return old, ""
        await old.close()
    lost = old is not None or await used_before(context)
    seat.session = None
    seat.session = session = Session(context.workspace, environment)
    return session, RESET if action.reset else RESTARTED if lost else ""


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
