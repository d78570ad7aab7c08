"""Waiting for a command: until it ends, or until it is time to ask whether to wait on."""

import asyncio
from dataclasses import dataclass

from events.actions import TerminalAction
from tools.shell.session import Call, Finished, Session
from tools.tool import Context

_PULSE = 0.25
"""Seconds between two looks at whether there is news to tell."""

_NEWEST = 4_000
"""Characters of the output that are told to who watches: more than a screen of it."""


@dataclass(frozen=True)
class Patience:
    """Seconds without new output after which the model is asked whether to wait on.

    `reply` is for what was typed to a command just now: one that waits for the next line says
    nothing more.
    """

    silence: float = 30.0
    reply: float = 3.0

    def of(self, action: TerminalAction) -> float:
        return self.reply if action.is_input and action.command else self.silence


async def waited(
    call: Call, session: Session, action: TerminalAction, patience: Patience, context: Context
) -> Finished | None:
    """How it ended, or None where it still runs; who watches is told of the newest output.

    Raises ToolFailed and OSError.
    """
    session.console.awaited = True
    try:
        return await _wait(call, session, action.timeout, patience.of(action), context)
    finally:
        session.console.awaited = False
        tell(session, context)


def tell(session: Session, context: Context) -> None:
    context.progress(session.output.newest(_NEWEST))


async def _wait(
    call: Call,
    session: Session,
    timeout: float | None,  # noqa: ASYNC109 - the command's, and at its end it goes on
    silence: float,
    context: Context,
) -> Finished | None:
    clock = asyncio.get_running_loop().time
    limit = clock() + timeout if timeout is not None else None
    told = 0
    while (left := (limit or session.heard + silence) - clock()) > 0:
        if (finished := await call.finished_within(min(_PULSE, left))) is not None:
            return finished
        if session.output.bytes > told:
            told = session.output.bytes
            tell(session, context)
    return await call.finished_within(0)
