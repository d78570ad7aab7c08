"""The `terminal` tool: shell commands in the workspace, in one shell that persists."""

import asyncio
import os
import re
from functools import partial
from typing import Any

from pydantic import Field

from perdure.events.actions import TerminalAction
from perdure.events.content import TextContent, ToolAnnotations, ToolDefinition
from perdure.events.observations import CmdOutputMetadata, TerminalObservation
from perdure.secrets.registry import SecretUnavailable
from perdure.tools.arguments import Arguments, json_schema, validate_arguments
from perdure.tools.shell import words
from perdure.tools.shell.session import CommandResult, ShellCommand, ShellSession
from perdure.tools.shell.sessions import ShellSessions, acquire_session
from perdure.tools.shell.waiting import SilenceTimeouts, report_progress, wait_for_command
from perdure.tools.tool import Context, Tool

DESCRIPTION = f"""\
Run a command in a bash shell that lasts, and get its output and exit code.

* It is one shell for the whole conversation, and starts in the workspace directory: the working \
directory, variables, functions and background jobs are still there in the next call.
* One command runs at a time. Join what belongs together with `&&`, `;` or newlines. Do not use \
`exit` or `set -e` outside a script or subshell: they end the shell.
* A command that prints nothing for {SilenceTimeouts.silence:.0f} seconds, or is not done after \
`timeout` seconds, keeps running: you get what it printed so far, with exit code -1. \
{words.GOING_ON} Give a `timeout` to a command that you know to be long and silent.
* Start a server in the background, with its output in a file: `server > server.log 2>&1 &`.
* Programs may ask, and you can answer; prefer flags such as `-y`. There is no screen: full-screen \
programs (editors, pagers) are of no use.
* The middle of a long output is left out: send it to a file and look at it with `grep`, `head` or \
`tail`.
"""

# An allow-list: no deny-list could name every variable that may hold a secret.
INHERITED_VARIABLES = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "LANG", "LANGUAGE"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR"),
)

PAGERS = ("PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER")

MAX_INPUT_LINE_BYTES = 4_095
"""A terminal drops the rest of a longer line of input."""

KEY = re.compile(r"C-[A-Za-z\[\\\]^_]")


class TerminalArguments(Arguments):
    command: str = Field(
        description="The command, or several joined by `&&`, `;` or newlines. With `is_input`: the "
        "text to type for the command that runs (Enter is added), a key (`C-c`, `C-d`, `C-z`), or "
        "nothing to wait for more output."
    )
    is_input: bool = Field(
        default=False, description="Whether `command` is input for the command that still runs."
    )
    timeout: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="Seconds to wait for the command, also while it prints nothing.",
    )
    reset: bool = Field(
        default=False,
        description="Whether to end the shell with all its processes first and start a new one.",
    )


def parse(arguments: dict[str, Any]) -> TerminalAction:
    """Parse the action; an empty command and a key are input, even without `is_input`."""
    values = validate_arguments(TerminalArguments, arguments)
    if "\0" in values.command:
        raise ValueError("`command` holds a NUL character: write it as '\\0' for printf.")
    if values.reset and values.is_input:
        raise ValueError(
            "`reset` starts a new shell, in which nothing waits for input: leave `is_input` out."
        )
    command = values.command if values.is_input or values.command.strip() else ""
    is_input = values.is_input or (not values.reset and bool(not command or KEY.fullmatch(command)))
    if (
        is_input
        and (longest := max(map(len, command.encode().split(b"\n")))) > MAX_INPUT_LINE_BYTES
    ):
        raise ValueError(
            f"A line of the input is {longest:,} bytes long, and a terminal takes at most "
            f"{MAX_INPUT_LINE_BYTES:,}: write the data to a file first."
        )
    changes = {"command": command, "is_input": is_input}
    return TerminalAction.model_validate(values.model_dump() | changes)


def encode_keys(text: str) -> bytes:
    """Encode an input as typed bytes: a control character, or the text and Enter."""
    if KEY.fullmatch(text):
        return bytes([ord(text[-1].upper()) & 0x1F])
    return text.encode() if not text or text.endswith("\n") else f"{text}\n".encode()


async def run(
    sessions: ShellSessions, timeouts: SilenceTimeouts, action: TerminalAction, context: Context
) -> TerminalObservation:
    """Run a command in the conversation's shell, or continue the one that runs there.

    Any exit code is an ordinary result, and so is a command that still runs. If the caller is
    cancelled, the command is killed with all that it started, and the shell stays. The sandbox
    decides which files and network it sees; it never gets the worker's environment.
    """
    fixed = {**dict.fromkeys(PAGERS, "cat"), "TERM": "dumb", "PWD": str(context.workspace)}
    async with sessions.slot(context.log.prefix) as slot:
        environment = {**inherited_environment(), **fixed, **context.variables}
        session, note = await acquire_session(action, slot, context, environment)
        if action.reset and not action.command:
            return _observation(action, session, note, 0)
        if refusal := _explain_refusal(action, session):
            return _observation(action, session, _join_lines(note, refusal), -1, is_error=True)
        try:
            command, late_note = _begin_call(action, session, context)
        except SecretUnavailable as error:
            text = f"This was not run. {error}"
            return _observation(action, session, _join_lines(note, text), -1, is_error=True)
        try:
            silence = timeouts.select(action)
            finished = await wait_for_command(command, session, context, action.timeout, silence)
            now = asyncio.get_running_loop().time()
            text = words.command_still_runs(command, now, action.timeout, silence)
            if finished is not None:
                text = words.command_ended(command, finished)
            return await _render_result(action, session, context, finished, note, late_note, text)
        except asyncio.CancelledError:
            try:
                await session.interrupt()
            finally:
                report_progress(session, context)
                session.drop_output()
            raise


def _explain_refusal(action: TerminalAction, session: ShellSession) -> str:
    if action.is_input:
        return words.NOTHING_RUNS if session.command is None else ""
    return words.BUSY if session.busy else ""


def _begin_call(
    action: TerminalAction, session: ShellSession, context: Context
) -> tuple[ShellCommand, str]:
    """Start the command, or type the input; return a note where the input came too late."""
    if action.is_input:
        assert session.command is not None
        return session.command, _type_keys(_encode_keys(action, context), session)
    if session.command is not None:
        session.append_note("")
        newline = "" if session.output.tail(1) in ("", "\n") else "\n"
        note = words.command_ended_meanwhile(session.command.result.result())
        session.append_note(f"{newline}{note}\n")
    return session.start(action.command, context.secrets.values_named_in(action.command)), ""


def _encode_keys(action: TerminalAction, context: Context) -> bytes:
    keys = encode_keys(context.secrets.resolve_input(action.command))
    if max(map(len, keys.split(b"\n"))) > MAX_INPUT_LINE_BYTES:
        message = f"{action.command} is too long to be typed: name it in a command instead."
        raise SecretUnavailable(message)
    return keys


def _type_keys(keys: bytes, session: ShellSession) -> str:
    if keys and not session.busy:
        return words.TOO_LATE
    if keys == b"\x03":
        session.press_interrupt()
    else:
        session.type(keys)
    return ""


async def _render_result(
    action: TerminalAction,
    session: ShellSession,
    context: Context,
    finished: CommandResult | None,
    before: str,
    *after: str,
) -> TerminalObservation:
    if finished is not None:
        session.command = None
    with session.take_output() as output:
        text, key = await output.render(context)
    has_moved = not session.closed and session.directory != str(context.workspace)
    directory_note = f"[Current working directory: {session.directory}]" if has_moved else ""
    observation = _observation(
        action,
        session,
        _join_lines(before, text.removesuffix("\n"), *after, directory_note),
        -1 if finished is None else finished.exit_code,
        is_error=words.TOO_LATE in after or words.NOT_RUN in after,
    )
    changes = {"timeout": finished is None, "full_output_save_dir": key}
    return observation.model_copy(update=changes)


def _observation(
    action: TerminalAction, session: ShellSession, text: str, exit_code: int, is_error: bool = False
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


def _join_lines(*parts: str) -> str:
    return "\n".join(part for part in parts if part)


def inherited_environment() -> dict[str, str]:
    """Return the part of the worker's environment that its processes may see."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in INHERITED_VARIABLES or name.startswith("LC_")
    }


def terminal_tool(sessions: ShellSessions, timeouts: SilenceTimeouts = SilenceTimeouts()) -> Tool:  # noqa: B008 - frozen
    """Make the tool with its shells in `sessions`, which the caller closes."""
    return Tool(
        definition=ToolDefinition(
            name="terminal",
            description=DESCRIPTION,
            parameters=json_schema(TerminalArguments),
            annotations=ToolAnnotations(title="Terminal"),
        ),
        parse=parse,
        run=partial(run, sessions, timeouts),
    )


SESSIONS = ShellSessions()
"""The shells of this worker's conversations; the worker closes them when it ends."""

TERMINAL = terminal_tool(SESSIONS)
