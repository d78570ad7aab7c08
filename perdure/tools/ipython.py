"""The `ipython` tool: cells of Python in one kernel that persists."""

import asyncio
import base64
from collections.abc import Sequence
from functools import partial
from typing import Any

from pydantic import Field

from perdure.events.actions import IPythonRunCellAction
from perdure.events.content import ImageContent, TextContent, ToolAnnotations, ToolDefinition
from perdure.events.observations import IPythonRunCellObservation
from perdure.secrets.registry import SecretUnavailable
from perdure.tools.arguments import Arguments, json_schema, validate_arguments
from perdure.tools.kernel import words
from perdure.tools.kernel.kernels import acquire_kernel, interrupt_cell
from perdure.tools.listing import detect_image_type, image_content
from perdure.tools.shell.prompt_markers import ImagePart
from perdure.tools.shell.session import ShellSession
from perdure.tools.shell.sessions import ShellSessions
from perdure.tools.shell.waiting import report_progress, wait_for_command
from perdure.tools.terminal import SESSIONS, inherited_environment
from perdure.tools.tool import Context, Tool, ToolFailed

NAME = "ipython"
TIMEOUT = 120.0

DESCRIPTION = f"""\
Run a cell of Python in an IPython kernel that lasts, and get its output.

* It is one kernel for the whole conversation, and starts in the workspace directory: variables, \
imports and functions are still there in the next cell.
* You get what the cell prints, the value of its last expression, and the traceback of an error. \
You see plots of matplotlib, and images that are the last expression or shown by `display`.
* Magics and commands work: `%timeit`, `%%bash`, `!ls`. Nothing can be typed, so `input()` fails.
* A cell that is not done after `timeout` seconds ({TIMEOUT:.0f}, if you give none) is interrupted \
by KeyboardInterrupt; the kernel stays.
* The middle of a long output is left out: print what you need.
"""


class IPythonArguments(Arguments):
    code: str = Field(
        default="", description="The cell: Python, with magics (`%`) and commands (`!`)."
    )
    timeout: float = Field(
        default=TIMEOUT,
        gt=0,
        allow_inf_nan=False,
        description="Seconds after which the cell is interrupted.",
    )
    reset: bool = Field(
        default=False,
        description="Whether to end the kernel with all its processes first and start a new one.",
    )


def parse(arguments: dict[str, Any]) -> IPythonRunCellAction:
    """Parse the action: a cell, a reset, or a reset with a cell after it."""
    values = validate_arguments(IPythonArguments, arguments)
    if "\0" in values.code:
        raise ValueError("`code` holds a NUL character: write it as '\\0' in a string.")
    code = values.code if values.code.strip() else ""
    if not code and not values.reset:
        raise ValueError("`code` is empty: send a cell to run, or `reset` for a new kernel.")
    return IPythonRunCellAction(code=code, timeout=values.timeout, reset=values.reset)


async def run(
    sessions: ShellSessions, action: IPythonRunCellAction, context: Context
) -> IPythonRunCellObservation:
    """Run a cell in the conversation's kernel.

    An exception in the cell is an ordinary result. If the caller is cancelled, the cell is
    interrupted and what it started is killed; the kernel stays if it reacts. The sandbox decides
    which files and network it sees; it never gets the worker's environment.
    """
    fixed = {"TERM": "dumb", "PWD": str(context.workspace)}
    environment = {**inherited_environment(), **fixed, **context.variables}
    async with sessions.slot(context.log.prefix, NAME) as slot:
        session, note = await acquire_kernel(action, slot, context, environment)
        if not action.code:
            return IPythonRunCellObservation(content=(TextContent(text=note),))
        try:
            variables = context.secrets.values_named_in(action.code)
        except SecretUnavailable as error:
            text = _join_lines(note, f"This was not run. {error}")
            return IPythonRunCellObservation(content=(TextContent(text=text),), is_error=True)
        try:
            return await _run_cell(action, session, context, variables, note)
        except asyncio.CancelledError:
            try:
                await session.interrupt()
            finally:
                report_progress(session, context)
                session.drop_output()
            raise


async def _run_cell(
    action: IPythonRunCellAction,
    session: ShellSession,
    context: Context,
    variables: dict[str, str],
    note: str,
) -> IPythonRunCellObservation:
    command = session.start(action.code, variables)
    limit = action.timeout
    in_time = await wait_for_command(command, session, context, limit, silence=limit)
    result = in_time or await interrupt_cell(command, session)
    session.command = None
    with session.take_output() as output:
        text, key = await output.render(context)
    if result is None:
        await session.close()
    elif not command.started.done():
        raise ToolFailed(f"The kernel could not be started: {text.strip() or 'it said nothing'}")
    notes = [words.cell_stopped(limit)] if in_time is None else []
    if session.closed:
        notes.append(words.kernel_ended(result))
    shown = _join_lines(note, text.strip("\n"), *notes) or "[no output]"
    images = _collect_images(session.image_parts)
    return IPythonRunCellObservation(
        content=(TextContent(text=shown), *images),
        is_error=in_time is None or session.closed or in_time.exit_code != 0,
        execution_count=command.number,
        timeout=in_time is None,
        kernel_ended=session.closed,
        full_output_save_dir=key,
    )


def _collect_images(parts: Sequence[ImagePart]) -> list[ImageContent]:
    """Put the images together; one that misses a part, dropped by an interrupt, is left out."""
    images: list[ImageContent] = []
    data, expected = "", -1
    for part in parts:
        is_next = part.rest == expected
        data, expected = (data if is_next else "") + part.data, part.rest - 1
        if part.rest:
            continue
        body = base64.b64decode(data)
        if kind := detect_image_type(body):
            images.append(image_content(kind, body))
        data, expected = "", -1
    return images


def _join_lines(*parts: str) -> str:
    return "\n".join(part for part in parts if part)


def ipython_tool(sessions: ShellSessions) -> Tool:
    """Make the tool with its kernels in `sessions`, which the caller closes."""
    return Tool(
        definition=ToolDefinition(
            name=NAME,
            description=DESCRIPTION,
            parameters=json_schema(IPythonArguments),
            annotations=ToolAnnotations(title="IPython"),
        ),
        parse=parse,
        run=partial(run, sessions),
    )


IPYTHON = ipython_tool(SESSIONS)
