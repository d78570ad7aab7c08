"""Shell commands in the workspace, each in a shell of its own."""

import asyncio
import os
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from events.actions import TerminalAction
from events.content import TextContent, ToolAnnotations, ToolDefinition
from events.observations import CmdOutputMetadata, TerminalObservation
from tools.arguments import schema_of, validated
from tools.output import Output
from tools.shell import LONGEST_COMMAND, SHELL, Ended, execute
from tools.tool import Context, Tool

TIMEOUT = 120.0
"""Seconds a command gets where the model does not say."""

DESCRIPTION = f"""\
Run a shell command ({SHELL}) in the workspace and get its output and exit code.

* Every call is a new shell in the workspace directory: `cd`, variables and background processes \
do not outlast the call. Join what belongs together with `&&` or `;`, and start a server in the \
same command as whatever talks to it.
* Nobody can answer questions: standard input is empty and there is no terminal. Pass flags such \
as `-y`, and no interactive programs (editors, pagers, REPLs).
* Standard output and standard error come back together. The middle of a long output is left \
out: send it to a file and look at it with `grep`, `head` or `tail`.
* A command that still runs after `timeout` seconds (default {TIMEOUT:.0f}) is ended with every \
process it started.
"""

# An allow-list, because nobody can list every name under which a worker may hold a secret.
PASSED_ON = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "LANG", "LANGUAGE"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR"),
)

_PULSE = 0.25
_NEWEST = 4_000


class TerminalArguments(BaseModel):
    """What the model is offered; `is_input` and `reset` belong to a session that lasts."""

    model_config = ConfigDict(extra="forbid")

    command: str = Field(description="The command, or several joined by `&&`, `;` or newlines.")
    timeout: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description=f"Seconds after which the command is ended; default {TIMEOUT:.0f}.",
    )


def parse(arguments: dict[str, Any]) -> TerminalAction:
    for name in ("is_input", "reset"):
        if arguments.get(name):
            raise ValueError(
                f"`{name}` is not available: every call is a new shell with nothing to go on "
                "with. Give everything in one `command`."
            )
    offered = {
        name: value for name, value in arguments.items() if name not in ("is_input", "reset")
    }
    take = validated(TerminalArguments, offered)
    _check(take.command)
    return TerminalAction(command=take.command, timeout=take.timeout)


def _check(command: str) -> None:
    if not command.strip():
        raise ValueError("`command` is empty: give the shell command to run.")
    if "\0" in command:
        raise ValueError("`command` holds a NUL character: write it as '\\0' for printf.")
    if (size := len(command.encode())) > LONGEST_COMMAND:
        raise ValueError(
            f"`command` is {size:,} bytes long, and at most {LONGEST_COMMAND:,} can be run: "
            "write the data to a file first."
        )


async def run(action: TerminalAction, context: Context) -> TerminalObservation:
    """Run it; an exit code other than 0 is a result like any other, a timeout is an error.

    The command sees the worker's files and network as the worker's user does: keeping it from
    them is the sandbox's business. What it does not get is the worker's environment.
    """
    timeout = action.timeout or TIMEOUT
    with Output() as output:
        watching = asyncio.create_task(_watch(output, context))
        try:
            ended = await execute(
                action.command, context.workspace, _environment(context), timeout, output.take
            )
        finally:
            watching.cancel()
            context.progress(output.newest(_NEWEST))
        text, key = await output.shown(context)
    return TerminalObservation(
        content=(TextContent(text=_with_ending(text, ended, timeout)),),
        is_error=ended.timed_out,
        command=action.command,
        exit_code=ended.exit_code,
        timeout=ended.timed_out,
        metadata=CmdOutputMetadata(exit_code=ended.exit_code, working_dir=str(context.workspace)),
        full_output_save_dir=key,
    )


async def _watch(output: Output, context: Context) -> None:
    """Tell of the newest output, at most every quarter of a second."""
    told = 0
    while True:
        await asyncio.sleep(_PULSE)
        if output.bytes > told:
            told = output.bytes
            context.progress(output.newest(_NEWEST))


def _environment(context: Context) -> dict[str, str]:
    passed = {
        name: value
        for name, value in os.environ.items()
        if name in PASSED_ON or name.startswith("LC_")
    }
    return {"TERM": "dumb", **passed, "PWD": str(context.workspace)}


def _counted(processes: int) -> str:
    return "1 process" if processes == 1 else f"{processes} processes"


def _with_ending(text: str, ended: Ended, timeout: float) -> str:
    lines = [text.removesuffix("\n")] if text else []
    if ended.background:
        lines.append(f"[Ended with the command: {_counted(ended.background)} in the background]")
    if ended.survivors:
        ids = ", ".join(map(str, ended.survivors))
        lines.append(f"[These processes could not be ended and may still run: {ids}]")
    if ended.timed_out:
        lines.append(
            f"[Command was ended with all its processes after {timeout:g} seconds, before it was "
            "done. Give a larger `timeout` if it needs longer.]"
        )
    else:
        lines.append(f"[Command finished with exit code {ended.exit_code}]")
    return "\n".join(lines)


TERMINAL = Tool(
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
    run=run,
)
