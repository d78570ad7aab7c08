"""A batch's own commands: each in a shell of its own, of which nothing is left."""

import asyncio
import shlex
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, TypeVar

from sandbox.sandbox import NONE, Sandbox
from tools.secrets.masker import Masker
from tools.secrets.registry import NOTHING
from tools.shell.session import Call, Session
from tools.terminal import PAGERS, passed_on
from tools.tool import ToolFailed

SAID = 15_000
"""Characters of the end of an output that are looked at."""

PULSE = 0.25
"""Seconds between two looks at whether there is news to tell."""

NEWEST = 4_000
"""Characters of the output that are told to who watches."""

CANNOT_BE_RUN = 126
"""The exit code by which a shell says so."""

KILLED = -9

SIGNALS = range(129, 193)
"""Exit codes by which a shell says that a signal ended a program."""

T = TypeVar("T")


@dataclass(frozen=True)
class Where:
    """`variables` are given to the command, and `answer` as a file, which PERDURE_ANSWER names."""

    folder: Path
    sandbox: Sandbox = NONE
    network: bool = False
    masker: Callable[[], Masker] = NOTHING.masker
    variables: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    answer: str | None = None


@dataclass(frozen=True)
class Ran:
    """`exit_code` is None where it took too long, and -N where signal N ended it.

    `output` is the end of what it wrote, to stdout and stderr together.
    """

    exit_code: int | None
    output: str


async def run(
    command: str, where: Where, seconds: float, tell: Callable[[str], None] = lambda _: None
) -> Ran:
    """Run it by `bash -c`, as the agent's own commands are run, but with nothing to read.

    All of its processes are gone when this returns, and when it is cancelled. Raises ToolFailed
    where there is no shell, and OSError.
    """
    if "\0" in command:
        return Ran(CANNOT_BE_RUN, "The command has a NUL in it, which no shell can read.")
    # Where there are walls, a command has a temporary folder of its own in place of this one.
    with TemporaryDirectory(prefix="perdure-", ignore_cleanup_errors=True) as own:
        environment = {**_environment(where), "TMPDIR": own}
        place = (where.folder, environment, where.masker(), where.sandbox, where.network)
        session = Session(*place)
        try:
            session.console.awaited = True
            call = session.start(_script(command, where.answer))
            code = await _exit_code(call, session, seconds, tell)
            with session.take() as output:
                return Ran(code, output.newest(SAID))
        finally:
            await undisturbed(session.close())


async def undisturbed(work: Coroutine[Any, Any, T]) -> T:
    """What it gives; who is cancelled meanwhile is so once it is done."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


def _environment(where: Where) -> dict[str, str]:
    fixed = {**dict.fromkeys(PAGERS, "cat"), "TERM": "dumb", "PWD": str(where.folder)}
    return {**passed_on(), **fixed, **where.variables}


def _script(command: str, answer: str | None) -> str:
    program = f"/bin/bash -c {shlex.quote(command)} </dev/null"
    if answer is None:
        return program
    text = shlex.quote(answer.replace("\0", "\N{REPLACEMENT CHARACTER}"))
    return (
        "export PERDURE_ANSWER\n"
        f'if PERDURE_ANSWER=$(mktemp) && printf %s {text} >"$PERDURE_ANSWER"; then {program}\n'
        f"else (exit {CANNOT_BE_RUN}); fi"
    )


async def _exit_code(
    call: Call, session: Session, seconds: float, tell: Callable[[str], None]
) -> int | None:
    clock = asyncio.get_running_loop().time
    over, told = clock() + seconds, 0
    while not call.finished.done() and (left := over - clock()) > 0:
        await call.finished_within(min(PULSE, left))
        if session.output.bytes > told:
            told = session.output.bytes
            tell(session.output.newest(NEWEST))
    if not call.finished.done():
        return None
    code = call.finished.result().exit_code
    if not call.begun.done():
        raise ToolFailed("The shell ended before it ran the command: look at the worker's log.")
    if code < 0:  # the shell was ended, as its processes took too much of the machine
        return KILLED
    return 128 - code if code in SIGNALS else code
