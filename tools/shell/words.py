"""What the model is told of the terminal, beside what its commands print."""

from tools.shell.session import Call, Finished
from tools.shell.shell import Ended

GOING_ON = (
    "Send an empty `command` with `is_input` to wait for more output, text with `is_input` to "
    "answer it, `C-c`, `C-d` or `C-z` with `is_input` to interrupt it, end its input or suspend "
    "it, or `reset` to start a new shell."
)

RESTARTED = (
    "[A new shell was started in the workspace: the one before is gone, with its working "
    "directory, its variables and its background processes.]"
)

RESET = (
    "[The shell was reset: a new one was started in the workspace, without the working directory, "
    "the variables and the background processes of the one before.]"
)

NOT_RUN = (
    "[This was not run: the shell had just ended. The next command gets a new shell in the "
    "workspace, without its working directory, variables and background processes.]"
)

SHELL_ENDED = (
    "[The shell ended with it, and so its working directory, variables and background processes "
    "are gone. The next command gets a new shell in the workspace.]"
)

NOTHING_RUNS = (
    "No command is running, so there is nothing to wait for and nobody to take input. Send a "
    "command without `is_input`."
)

BUSY = f"This was not run, because the command before it is still running. {GOING_ON}"

TOO_LATE = "[The command had ended before, so this input was not sent.]"


def still_runs(call: Call, now: float, timeout: float | None, silence: float) -> str:
    why = (
        f"No new output for {silence:g} seconds"
        if timeout is None
        else f"Not done within the `timeout` of {timeout:g} seconds"
    )
    since = f"{now - call.started:.1f} seconds after its start"
    return f"[{why}: the command still runs, {since}. {GOING_ON}]"


def ended(call: Call, finished: Finished) -> str:
    if not call.begun.done():
        return NOT_RUN
    lines = [*([] if finished.shell is None else _left(finished.shell))]
    lines.append(f"[Command finished with exit code {finished.exit_code}]")
    if finished.shell is not None:
        lines.append(SHELL_ENDED)
    return "\n".join(lines)


def meanwhile(finished: Finished) -> str:
    """Between the last output of a command that nobody waited for and the next command's."""
    return f"[The command before ended with exit code {finished.exit_code}]"


def _left(shell: Ended) -> list[str]:
    lines = []
    if shell.background:
        lines.append(f"[Ended with the shell: {_counted(shell.background)} in the background]")
    if shell.survivors:
        ids = ", ".join(map(str, shell.survivors))
        lines.append(f"[These processes could not be ended and may still run: {ids}]")
    return lines


def _counted(processes: int) -> str:
    return "1 process" if processes == 1 else f"{processes} processes"
