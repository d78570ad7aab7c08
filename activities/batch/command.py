"""Running the commands of a batch, each in a shell of its own."""

import asyncio
import shlex
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from perdure.sandbox.sandbox import UNCONFINED, Sandbox
from perdure.secrets.masker import Masker
from perdure.secrets.registry import NO_LENT_SECRETS
from perdure.tools.shell.session import ShellCommand, ShellSession
from perdure.tools.terminal import PAGERS, inherited_environment
from perdure.tools.tool import ToolFailed

MAX_OUTPUT_CHARS = 15_000
"""Length limit of an output, of which the end is kept."""

OUTPUT_POLL_INTERVAL = 0.25
"""Seconds between two reports of new output."""

MAX_PROGRESS_CHARS = 4_000
"""Length limit of a report."""

CANNOT_RUN = 126
"""Exit code of a shell that cannot run a command."""

KILLED = -9
SIGNAL_EXIT_CODES = range(129, 193)
"""Exit codes of a shell for a program that a signal ended."""

T = TypeVar("T")


@dataclass(frozen=True)
class CommandContext:
    """The surroundings of a command.

    `variables` go into its environment; `answer` into a file, which PERDURE_ANSWER names.
    """

    folder: Path
    sandbox: Sandbox = UNCONFINED
    network: bool = False
    masker: Callable[[], Masker] = NO_LENT_SECRETS.masker
    variables: Mapping[str, str] = field(default_factory=dict)
    answer: str | None = None


@dataclass(frozen=True)
class CommandResult:
    """The result of a command.

    `exit_code` is None after a timeout, and -N if signal N ended the command. `output` is the end
    of stdout and stderr together.
    """

    exit_code: int | None
    output: str


async def run_command(
    command: str,
    context: CommandContext,
    seconds: float,
    report: Callable[[str], None] = lambda _: None,
) -> CommandResult:
    """Run a command by `bash -c` as the agent's own commands are run, with an empty stdin.

    All of its processes have ended when this returns or is cancelled. Raises ToolFailed if there
    is no shell, and OSError.
    """
    if "\0" in command:
        return CommandResult(CANNOT_RUN, "The command has a NUL in it, which no shell can read.")
    # In a sandbox, a command has a temporary folder of its own in place of this one.
    with TemporaryDirectory(prefix="perdure-", ignore_cleanup_errors=True) as own:
        environment = {
            **inherited_environment(),
            **dict.fromkeys(PAGERS, "cat"),
            "TERM": "dumb",
            "PWD": str(context.folder),
            **context.variables,
            "TMPDIR": own,
        }
        confinement = (context.sandbox, context.network)
        session = ShellSession(context.folder, environment, context.masker(), *confinement)
        try:
            session.console.unthrottled = True
            call = session.start(_script(command, context.answer))
            code = await _wait_for_exit_code(call, session, seconds, report)
            with session.take_output() as output:
                return CommandResult(code, output.tail(MAX_OUTPUT_CHARS))
        finally:
            await delay_cancellation(session.close())


async def delay_cancellation(work: Coroutine[Any, Any, T]) -> T:
    """Await `work`; if cancelled meanwhile, finish it first, then raise CancelledError."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


def _script(command: str, answer: str | None) -> str:
    program = f"/bin/bash -c {shlex.quote(command)} </dev/null"
    if answer is None:
        return program
    text = shlex.quote(answer.replace("\0", "\N{REPLACEMENT CHARACTER}"))
    return (
        "export PERDURE_ANSWER\n"
        f'if PERDURE_ANSWER=$(mktemp) && printf %s {text} >"$PERDURE_ANSWER"; then {program}\n'
        f"else (exit {CANNOT_RUN}); fi"
    )


async def _wait_for_exit_code(
    call: ShellCommand, session: ShellSession, seconds: float, report: Callable[[str], None]
) -> int | None:
    clock = asyncio.get_running_loop().time
    deadline, reported = clock() + seconds, 0
    while not call.result.done() and (left := deadline - clock()) > 0:
        await call.wait(min(OUTPUT_POLL_INTERVAL, left))
        if session.output.bytes > reported:
            reported = session.output.bytes
            report(session.output.tail(MAX_PROGRESS_CHARS))
    if not call.result.done():
        return None
    code = call.result.result().exit_code
    if not call.started.done():
        raise ToolFailed("The shell ended before it ran the command: look at the worker's log.")
    if code < 0:  # the shell was ended, as its processes took too much of the machine
        return KILLED
    return 128 - code if code in SIGNAL_EXIT_CODES else code
