"""Waiting for a command until it ends, or until the model decides whether to wait on."""

import asyncio
from dataclasses import dataclass

from perdure.events.actions import TerminalAction
from perdure.tools.shell.session import CommandResult, ShellCommand, ShellSession
from perdure.tools.tool import Context

_PROGRESS_INTERVAL = 0.25
"""Seconds between two reports of new output."""
_MAX_PROGRESS_CHARACTERS = 4_000
"""The newest output that watchers see: more than a screen."""


@dataclass(frozen=True)
class SilenceTimeouts:
    """Seconds without new output after which the model decides whether to wait on.

    `reply` applies after typed input: a program that waits for the next line prints nothing more.
    """

    silence: float = 30.0
    reply: float = 3.0

    def select(self, action: TerminalAction) -> float:
        return self.reply if action.is_input and action.command else self.silence


async def wait_for_command(
    command: ShellCommand,
    session: ShellSession,
    context: Context,
    time_limit: float | None,
    silence: float,
) -> CommandResult | None:
    """Return the result, or None if the command still runs; report the newest output meanwhile.

    Waits `time_limit` seconds; without it, until nothing was printed for `silence` seconds. Raises
    ToolFailed and OSError.
    """
    clock, reported_bytes = asyncio.get_running_loop().time, 0
    limit = clock() + time_limit if time_limit is not None else None
    session.console.unthrottled = True
    try:
        while (remaining := (limit or session.last_output_time + silence) - clock()) > 0:
            if (result := await command.wait(min(_PROGRESS_INTERVAL, remaining))) is not None:
                return result
            if session.output.bytes > reported_bytes:
                reported_bytes = session.output.bytes
                report_progress(session, context)
        return await command.wait(0)
    finally:
        session.console.unthrottled = False
        report_progress(session, context)


def report_progress(session: ShellSession, context: Context) -> None:
    context.progress(session.output.tail(_MAX_PROGRESS_CHARACTERS))
