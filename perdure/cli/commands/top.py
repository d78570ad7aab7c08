"""`perdure top`: the work of all users, in one screen."""

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from perdure.cli.declarations.operations import Top
from perdure.cli.environment import connect_servers
from perdure.cli.options import Format
from perdure.cli.output import is_terminal, note, show_json
from perdure.cli.rendering.overview_table import draw_overview, list_lines
from perdure.errors import Unreachable
from perdure.operations.overview import Overview, read_overview

INTERVAL = 2.0
"""Seconds between two looks."""


async def top(options: Top) -> None:
    client = await connect_servers()

    async def read() -> Overview:
        return await read_overview(client, options.limit, options.user)

    overview = await read()
    if options.output is not Format.text:
        show_json(overview.model_dump(mode="json"), options.output)
    elif not is_terminal(sys.stdout):
        for line in list_lines(overview):
            print(line)
        if not overview.conversations:
            note("No conversation is at work.")
    elif options.once:
        from perdure.cli.consoles import stdout

        stdout.print(draw_overview(overview, datetime.now(UTC)), soft_wrap=False)
    else:
        with contextlib.suppress(asyncio.CancelledError):
            await _show_again_and_again(overview, read)


async def _show_again_and_again(
    overview: Overview, read: Callable[[], Awaitable[Overview]]
) -> None:
    """Show what is at work on a whole screen until the command is cancelled."""
    from rich.live import Live

    from perdure.cli.consoles import stdout

    with Live(console=stdout, screen=True, auto_refresh=False) as live:
        while True:
            live.update(draw_overview(overview, datetime.now(UTC)), refresh=True)
            await asyncio.sleep(INTERVAL)
            with contextlib.suppress(Unreachable):  # what was seen last stays on the screen
                overview = await read()
