"""Notes on the state of the terminal for the model."""

from collections.abc import Iterator

from perdure.tools.shell.session import CommandResult, ShellCommand
from perdure.tools.shell.shell import ShellExit

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


def command_still_runs(
    command: ShellCommand, current_time: float, timeout: float | None, silence: float
) -> str:
    reason = f"No new output for {silence:g} seconds"
    if timeout is not None:
        reason = f"Not done within the `timeout` of {timeout:g} seconds"
    since = f"{current_time - command.start_time:.1f} seconds after its start"
    return f"[{reason}: the command still runs, {since}. {GOING_ON}]"


def command_ended(command: ShellCommand, result: CommandResult) -> str:
    if not command.started.done():
        return NOT_RUN
    ended = f"[Command finished with exit code {result.exit_code}]"
    if result.shell_exit is None:
        return ended
    return "\n".join([*_describe_leftovers(result.shell_exit), ended, SHELL_ENDED])


def command_ended_meanwhile(result: CommandResult) -> str:
    """Return a note to separate the output of an earlier command from the next one's."""
    return f"[The command before ended with exit code {result.exit_code}]"


def _describe_leftovers(shell: ShellExit) -> Iterator[str]:
    if shell.background:
        plural = "" if shell.background == 1 else "es"
        yield f"[Ended with the shell: {shell.background} process{plural} in the background]"
    if shell.survivors:
        ids = ", ".join(map(str, shell.survivors))
        yield f"[These processes could not be ended and may still run: {ids}]"
