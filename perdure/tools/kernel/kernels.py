"""The kernel of a conversation: started, and after a loss reported or made again."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from perdure.events.actions import IPythonRunCellAction
from perdure.sandbox.system import PYTHON
from perdure.secrets.registry import SecretUnavailable
from perdure.tools.kernel import words
from perdure.tools.kernel.history import Cell, Outcome, read_cells
from perdure.tools.shell.session import CommandResult, ShellCommand, ShellSession
from perdure.tools.shell.sessions import SessionSlot, start_session
from perdure.tools.shell.shell import Program
from perdure.tools.tool import Context, ToolFailed

PROGRAM = Path(__file__).with_name("program.py")

INTERRUPT_TIMEOUT = 5.0
"""Seconds for an interrupted cell to stop; then its kernel is ended."""
REPLAY_TIMEOUT = 600.0
"""Seconds for all cells that are run again."""


def kernel_program() -> Program:
    """Return the kernel, in the worker's own environment: its packages, IPython among them."""
    environment = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    readable = (PROGRAM, Path(sys.prefix), PYTHON)
    return Program((sys.executable, "-I", str(PROGRAM)), environment, readable)


async def acquire_kernel(
    action: IPythonRunCellAction,
    slot: SessionSlot,
    context: Context,
    environment: Mapping[str, str],
) -> tuple[ShellSession, str]:
    """Return the kernel to use, and a note for the model if a new one replaces another.

    Raises ToolFailed.
    """
    if (previous := slot.session) is not None:
        await previous.wait_for_interrupt()
        if not (previous.closed or action.reset) and previous.network == context.network:
            return previous, ""
        await previous.close()
    slot.session = None
    cells = [] if action.reset else await read_cells(context)
    session = slot.session = await start_session(context, environment, kernel_program())
    if action.reset:
        return session, words.RESET
    if cells and context.replay_cells:
        return session, await _replay(session, cells, context)
    return session, words.kernel_lost(cells) if cells else ""


async def _replay(session: ShellSession, cells: Sequence[Cell], context: Context) -> str:
    """Run the cells whose outcome is known again, and return the note on what is there now.

    A kernel that has not run all of them is ended, as its state is none that there ever was.
    """
    ran = [cell for cell in cells if cell.outcome != "unknown"]
    differing = 0
    try:
        async with asyncio.timeout(REPLAY_TIMEOUT):
            for cell in ran:
                differing += await _run_again(session, cell, context) != cell.outcome
    except BaseException as error:
        await session.close()
        if isinstance(error, TimeoutError | SecretUnavailable | ToolFailed):
            raise ToolFailed(f"{words.NOT_REPLAYED} ({error or 'it took too long'})") from error
        raise
    session.command = None
    skipped = [cell for cell in cells if cell.outcome == "unknown"]
    return words.kernel_replayed(ran, differing, skipped)


async def _run_again(session: ShellSession, cell: Cell, context: Context) -> Outcome:
    variables = context.secrets.values_named_in(cell.code)
    result = await session.start(cell.code, variables).result
    if session.closed:
        raise ToolFailed("it ended")
    session.drop_output()
    return "failed" if result.exit_code else "done"


async def interrupt_cell(command: ShellCommand, session: ShellSession) -> CommandResult | None:
    """Interrupt the cell, and return its result; None for a cell that does not stop."""
    session.press_interrupt()
    return await command.wait(INTERRUPT_TIMEOUT)
