"""The words of steps at work, while they grow, beneath the events of a conversation."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from rich.cells import chop_cells
from rich.live import Live
from rich.text import Text

from cli.output import Format, plain, stdout
from client.live import Growing
from events.entry import Entry

NAMES = {"llm.chat": "agent", "llm.condense": "condenser", "tool.call": "output"}
"""The steps that have something to say, and who says it."""

LINES = 12
"""How many of the newest lines of each are shown."""

HEAD = 14
"""Columns before the words."""


@contextlib.asynccontextmanager
async def growing(
    steps: AsyncIterator[tuple[Growing, ...]], output: Format
) -> AsyncIterator[Callable[[Entry], None]]:
    """While it is used, what steps at work say stands beneath everything that is printed.

    It gives what is to be called with every event before that is printed: the words that the
    event was made of are taken away. Where nobody looks at a terminal, nothing is shown.
    """
    if output is not Format.text or not stdout.is_terminal:
        yield lambda _: None
        return
    below = Live(console=stdout, transient=True, auto_refresh=False, vertical_overflow="crop")
    region = Region(below)
    with below:
        showing = asyncio.create_task(_show(steps, region))
        try:
            yield region.settle
        finally:
            showing.cancel()
            await asyncio.wait({showing})
            region.take(())


async def _show(steps: AsyncIterator[tuple[Growing, ...]], region: "Region") -> None:
    async for news in steps:
        region.take(news)


class Region:
    """What stands there now: all steps at work but those whose events have been printed."""

    def __init__(self, below: Live) -> None:
        self.below = below
        self.steps: tuple[Growing, ...] = ()
        self.settled: set[tuple[str, str]] = set()

    def take(self, steps: tuple[Growing, ...]) -> None:
        self.steps = steps
        self._draw()

    def settle(self, entry: Entry) -> None:
        step = entry.origin.activity.partition(" ")[0]
        self.settled.add((entry.origin.run, step))
        self._draw()

    def _draw(self) -> None:
        left = (one for one in self.steps if (one.run_id, one.activity_id) not in self.settled)
        room = min(LINES, stdout.height - 2)
        shown = [line for one in left if one.kind in NAMES for line in lines_of(one, room)]
        self.below.update(Text("\n").join(shown[-max(1, stdout.height - 2) :]), refresh=True)


def lines_of(step: Growing, most: int) -> list[Text]:
    """The newest lines of a step, cut to the terminal's width, under a head of who speaks."""
    width = max(20, stdout.width - HEAD - 1)
    text = plain(step.text.strip("\n")).expandtabs()
    lines = [part for line in text.split("\n") for part in chop_cells(line, width) or [""]]
    if step.attempt > 1:
        mark = f"(attempt {step.attempt}{_reason(step)})"
        lines = [chop_cells(mark, width)[0], *(lines[-most + 1 :] if text else [])]
    elif not text:
        lines = ["..."]
    first, *rest = lines[-most:]
    head = f"  {NAMES[step.kind]:<{HEAD - 2}}"
    return [Text(head + first, "dim"), *(Text(" " * HEAD + line, "dim") for line in rest)]


def _reason(step: Growing) -> str:
    reason = plain(" ".join((step.failure or "").split()))
    return f": {reason}" if reason else ""
