"""Notes on the state of the kernel for the model."""

from collections.abc import Sequence

from perdure.tools.kernel.history import Cell, list_names
from perdure.tools.shell.session import CommandResult
from perdure.wording import count

MAX_NAMES = 40
"""Lost names that are listed."""

RESET = (
    "[The kernel was reset: a new one was started in the workspace, without the variables, imports "
    "and background processes of the one before.]"
)

_LOST = (
    "[A new kernel was started in the workspace: the one before is gone, with its variables, "
    "imports, working directory and background processes."
)
_AGAIN = (
    "No cell was run again, as it might do twice what must be done once: run again what you need.]"
)


NOT_REPLAYED = (
    "This was not run: the kernel was lost with its worker, and the cells before could not be run "
    "again in a new one. Call the tool with `reset`, and run again what you need."
)


def kernel_lost(cells: Sequence[Cell]) -> str:
    return f"{_LOST} {_list_lost_names(cells)}{_AGAIN}"


def kernel_replayed(ran: Sequence[Cell], differing: int, skipped: Sequence[Cell]) -> str:
    """Say which state a new kernel has after the cells of the lost one were run again."""
    note = (
        f"{_LOST} Run again in it, in order: {count(len(ran), 'cell')}. Values that depend on "
        "time, chance, files or the network may differ."
    )
    if differing:
        note += f" Not ended as before: {count(differing, 'cell')}."
    if skipped:
        note += (
            f" Left out, as stopped or of unknown outcome: {count(len(skipped), 'cell')}. "
            f"{_list_lost_names(skipped)}".rstrip()
        )
    return f"{note}]"


def kernel_ended(result: CommandResult | None) -> str:
    """Say that the kernel ended with the cell, by itself or because the cell did not stop."""
    reason = "because the cell did not stop when it was interrupted"
    if result is not None and result.shell_exit is not None:
        reason = f"with exit code {result.shell_exit.exit_code}"
    return (
        f"[The kernel ended, {reason}: its variables, imports and background processes are gone. "
        "The next cell gets a new kernel in the workspace.]"
    )


def cell_stopped(timeout: float) -> str:
    return (
        f"[The cell was interrupted: it was not done within its `timeout` of {timeout:g} seconds. "
        "Give a longer one, or start what takes long in the background.]"
    )


def _list_lost_names(cells: Sequence[Cell]) -> str:
    names = list_names(cells)
    if not names:
        return ""
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return f"Lost names: {', '.join(names[:MAX_NAMES])}{more}. "
