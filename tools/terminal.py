"""Shell commands in the workspace, in one shell that lasts from call to call."""

import asyncio
import os
from functools import partial

from events.actions import TerminalAction
from events.content import TextContent, ToolAnnotations, ToolDefinition
from events.observations import CmdOutputMetadata, TerminalObservation
from tools.arguments import schema_of
from tools.secrets.registry import NoValue
from tools.shell.arguments import LONGEST_LINE, TerminalArguments, keys_of, parse
from tools.shell.dialogue import session_for
from tools.shell.session import Call, Finished, Session
from tools.shell.sessions import Sessions
from tools.shell.waiting import Patience, tell, waited
from tools.shell.words import (
    BUSY,
    GOING_ON,
    NOT_RUN,
    NOTHING_RUNS,
    TOO_LATE,
    ended,
    meanwhile,
    still_runs,
)
from tools.tool import Context, Tool

DESCRIPTION = f"""\
Run a command in a bash shell that lasts, and get its output and exit code.

* It is one shell for the whole conversation, and starts in the workspace directory: the working \
directory, variables, functions and background jobs are still there in the next call.
* One command runs at a time. Join what belongs together with `&&`, `;` or newlines. Do not use \
`exit` or `set -e` outside a script or subshell: they end the shell.
* A command that prints nothing for {Patience.silence:.0f} seconds, or is not done after `timeout` \
seconds, keeps running: you get what it printed so far, with exit code -1. {GOING_ON} Give a \
`timeout` to a command that you know to be long and silent.
* Start a server in the background, with its output in a file: `server > server.log 2>&1 &`.
* Programs may ask, and you can answer; prefer flags such as `-y`. There is no screen: full-screen \
programs (editors, pagers) are of no use.
* The middle of a long output is left out: send it to a file and look at it with `grep`, `head` or \
`tail`.
"""

# An allow-list, because nobody can list every name under which a worker may hold a secret.
PASSED_ON = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "LANG", "LANGUAGE"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR"),
)

PAGERS = ("PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER")


async def run(
    sessions: Sessions, patience: Patience, action: TerminalAction, context: Context
) -> TerminalObservation:
    """Run a command in the conversation's shell, or go on with the one that runs there.

    An exit code other than 0 is a result like any other, and so is a command that still runs.
    Where the caller is cancelled, the command ends, with all that it started, and the shell stays.

    What the command sees of the worker's files and network is the sandbox's business. What it
    never gets is the worker's environment.
    """
    async with sessions.seat(context.conversation_id) as seat:
        session, note = await session_for(action, seat, context, _environment(context))
        if action.reset and not action.command:
            return _observation(action, session, note, 0)
        if (refusal := _refusal(action, session)) is not None:
            return _observation(action, session, _joined(note, refusal), -1, is_error=True)
        try:
            call, late = _begin(action, session, context)
        except NoValue as error:
            told = f"This was not run. {error}"
            return _observation(action, session, _joined(note, told), -1, is_error=True)
        try:
            finished = await waited(call, session, action, patience, context)
            told = still_runs(call, _now(), action.timeout, patience.of(action))
            notes = (late, told if finished is None else ended(call, finished))
            return await _shown(action, session, context, finished, note, *notes)
        except asyncio.CancelledError:
            await _interrupt(session, context)
            raise


def _refusal(action: TerminalAction, session: Session) -> str | None:
    if action.is_input:
        return NOTHING_RUNS if session.call is None else None
    return BUSY if session.busy else None


def _begin(action: TerminalAction, session: Session, context: Context) -> tuple[Call, str]:
    """Give the shell its command, or the command its input; and a note where that is too late."""
    if action.is_input:
        assert session.call is not None
        return session.call, _typed(_keys(action, context), session)
    if session.call is not None:
        session.say("")
        newline = "" if session.output.newest(1) in ("", "\n") else "\n"
        session.say(f"{newline}{meanwhile(session.call.finished.result())}\n")
    return session.start(action.command, context.secrets.named_in(action.command)), ""


def _keys(action: TerminalAction, context: Context) -> bytes:
    keys = keys_of(context.secrets.typed(action.command))
    if max(map(len, keys.split(b"\n"))) > LONGEST_LINE:
        raise NoValue(f"{action.command} is too long to be typed: name it in a command instead.")
    return keys


def _typed(keys: bytes, session: Session) -> str:
    if keys and not session.busy:
        return TOO_LATE
    if keys == b"\x03":
        session.press_interrupt()
    else:
        session.type(keys)
    return ""


async def _shown(
    action: TerminalAction,
    session: Session,
    context: Context,
    finished: Finished | None,
    before: str,
    *after: str,
) -> TerminalObservation:
    if finished is not None:
        session.settle()
    with session.take() as output:
        text, key = await output.shown(context)
    moved = not session.over and session.directory != str(context.workspace)
    where = f"[Current working directory: {session.directory}]" if moved else ""
    observation = _observation(
        action,
        session,
        _joined(before, text.removesuffix("\n"), *after, where),
        -1 if finished is None else finished.exit_code,
        is_error=TOO_LATE in after or NOT_RUN in after,
    )
    changes = {"timeout": finished is None, "full_output_save_dir": key}
    return observation.model_copy(update=changes)


def _observation(
    action: TerminalAction, session: Session, text: str, exit_code: int, is_error: bool = False
) -> TerminalObservation:
    return TerminalObservation(
        content=(TextContent(text=text),),
        is_error=is_error,
        command=action.command,
        exit_code=exit_code,
        metadata=CmdOutputMetadata(
            exit_code=exit_code, pid=session.pid, working_dir=session.directory
        ),
    )


async def _interrupt(session: Session, context: Context) -> None:
    try:
        await session.interrupt()
    finally:
        if session.output.bytes:
            tell(session, context)
        session.forget()


def _now() -> float:
    return asyncio.get_running_loop().time()


def _joined(*parts: str) -> str:
    return "\n".join(part for part in parts if part)


def passed_on() -> dict[str, str]:
    """Of the worker's environment, what its processes may see."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in PASSED_ON or name.startswith("LC_")
    }


def _environment(context: Context) -> dict[str, str]:
    pagers = dict.fromkeys(PAGERS, "cat")
    return {**passed_on(), **pagers, "TERM": "dumb", "PWD": str(context.workspace)}


def terminal(sessions: Sessions, patience: Patience = Patience()) -> Tool:  # noqa: B008 - frozen
    """The tool, with its shells among `sessions`, which somebody has to close."""
    return Tool(
        definition=ToolDefinition(
            name="terminal",
            description=DESCRIPTION,
            parameters=schema_of(TerminalArguments),
            annotations=ToolAnnotations(
                title="Terminal",
                readOnlyHint=False,
                destructiveHint=True,
                idempotentHint=False,
                openWorldHint=True,
            ),
        ),
        parse=parse,
        run=partial(run, sessions, patience),
    )


SESSIONS = Sessions()
"""The shells of this worker's conversations, to be closed when it ends."""

TERMINAL = terminal(SESSIONS)
