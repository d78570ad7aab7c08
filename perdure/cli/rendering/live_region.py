"""Live region beneath the events: the output of running steps, while it grows."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from rich.cells import chop_cells
from rich.live import Live
from rich.text import Text

from perdure.cli.consoles import stdout
from perdure.cli.options import Format
from perdure.cli.output import escape_controls
from perdure.client.running_step import RunningStep
from perdure.events.entry import Entry

SPEAKERS = {"llm.chat": "agent", "llm.condense": "condenser", "tool.call": "output"}
"""The kinds of steps that have output, and the speaker shown for each."""

MAX_STEP_LINES = 12
"""Newest lines shown of each step."""

HEAD_COLUMNS = 14
"""Width of the speaker's column."""


@contextlib.asynccontextmanager
async def run_beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run `work` as a task for as long as the context is open."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


def live_area() -> Live:
    """Make the area beneath all other output that is drawn again and goes away at the end."""
    return Live(console=stdout, transient=True, auto_refresh=False, vertical_overflow="crop")


@contextlib.asynccontextmanager
async def show_live_steps(
    steps: AsyncIterator[tuple[RunningStep, ...]], output: Format
) -> AsyncIterator[Callable[[Entry], None]]:
    """Show the output of running steps beneath everything that is printed meanwhile.

    The function that it yields must be called with every entry before that is printed: it removes
    the step that the event came of. Nothing is shown unless stdout is a terminal.
    """
    if output is not Format.text or not stdout.is_terminal:
        yield lambda _: None
        return
    with live_area() as live:
        region = LiveRegion(live)
        try:
            async with run_beside(region.follow(steps)):
                yield region.finish_step
        finally:
            region.set_steps(())


@dataclass
class LiveRegion:
    """The running steps, without those whose events have been printed."""

    live: Live
    steps: tuple[RunningStep, ...] = ()
    finished_steps: set[tuple[str, str]] = field(default_factory=set)

    async def follow(self, steps: AsyncIterator[tuple[RunningStep, ...]]) -> None:
        async for running in steps:
            self.set_steps(running)

    def set_steps(self, steps: tuple[RunningStep, ...]) -> None:
        self.steps = steps
        self._draw()

    def finish_step(self, entry: Entry) -> None:
        step = entry.origin.activity.partition(" ")[0]
        self.finished_steps.add((entry.origin.run, step))
        self._draw()

    def _draw(self) -> None:
        max_lines = min(MAX_STEP_LINES, stdout.height - 2)
        lines = [
            line
            for step in self.steps
            if (step.run_id, step.activity_id) not in self.finished_steps and step.kind in SPEAKERS
            for line in step_lines(step, max_lines)
        ]
        self.live.update(Text("\n").join(lines[-max(1, stdout.height - 2) :]), refresh=True)


def wrap_words(text: str, width: int) -> list[str]:
    """Wrap a text to lines of that many cells, and break only words that are longer."""
    lines = escape_controls(text.strip("\n")).expandtabs().split("\n")
    return [part.plain for line in lines for part in Text(line).wrap(stdout, width) or [Text()]]


def step_lines(step: RunningStep, max_lines: int) -> list[Text]:
    """Render the newest lines of a step, wrapped to the terminal's width, beside its speaker."""
    width = max(20, stdout.width - HEAD_COLUMNS - 1)
    text = step.text.strip("\n")
    lines = wrap_words(text, width)
    if step.attempt > 1:
        failure = escape_controls(" ".join((step.failure or "").split()))
        next_at = step.retry.next_at if step.retry is not None else None
        when = f" at {next_at[11:19]} UTC" if next_at is not None else ""
        mark = f"(attempt {step.attempt}{when}{': ' if failure else ''}{failure})"
        lines = [chop_cells(mark, width)[0], *(lines[-max_lines + 1 :] if text else [])]
    elif not text:
        lines = ["..."]
    first, *rest = lines[-max_lines:]
    head = f"  {SPEAKERS[step.kind]:<{HEAD_COLUMNS - 2}}"
    return [Text(head + first, "dim"), *(Text(" " * HEAD_COLUMNS + line, "dim") for line in rest)]
