"""Display of running batches up to their end."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import TypeAlias

from rich.live import Live
from rich.text import Text

from perdure.cli.batch.progress_view import (
    closing_sentence,
    is_complete,
    progress_fields,
    progress_line,
    progress_lines,
)
from perdure.cli.consoles import stdout
from perdure.cli.environment import Environment
from perdure.cli.options import Format
from perdure.cli.output import note, show_json, show_result
from perdure.cli.rendering.live_region import live_area
from perdure.client.batch.protocol import BatchControl
from perdure.client.trouble import Trouble
from perdure.evaluation.progress import Progress
from perdure.operations.error_reports import EXIT_FAILED, EXIT_OK

Alert: TypeAlias = tuple[str | None, str | None]
"""The reason of a batch, and the cause of its trouble."""

ShowProgress: TypeAlias = Callable[[Progress, Trouble | None], None]

POLL_INTERVAL = 1.0
"""Seconds between two queries of the progress."""

TROUBLE_CHECK_AFTER = 5.0
"""Seconds without progress before the reason is looked for."""

LOG_LINE_INTERVAL = 5.0
"""Seconds between two lines of a batch, unless somebody has to act."""


class LiveDisplay:
    """The display of a terminal: several lines for each batch."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._batches: dict[str, tuple[Progress, str | None]] = {}

    def update(self, progress: Progress, trouble: Trouble | None) -> None:
        sentence = trouble.sentence if trouble else None
        self._batches[progress.name] = progress, sentence
        self._live.update(self.text, refresh=True)

    @property
    def text(self) -> Text:
        """Render all batches, cut to the size of the terminal."""
        columns = stdout.width - 1
        lines = [
            line for batch in self._batches.values() for line in progress_lines(*batch, columns)
        ]
        for line in lines:
            line.truncate(columns, overflow="ellipsis")
        return Text("\n").join(lines[: stdout.height - 1])


class LogDisplay:
    """The display of a log: a line now and then, and at once where somebody has to act."""

    def __init__(self, output: Format) -> None:
        self._output = output
        self._last: dict[str, tuple[str, float, Alert]] = {}

    def update(self, progress: Progress, trouble: Trouble | None) -> None:
        name, line, now = progress.name, progress_line(progress), monotonic()
        last_line, last_time, last_alert = self._last.get(name, ("", float("-inf"), (None, None)))
        alert = (progress.reason, trouble.cause if trouble else None)
        changed = line != last_line
        if alert == last_alert and not (changed and now >= last_time + LOG_LINE_INTERVAL):
            return
        self._last[name] = line, now, alert
        if self._output is Format.jsonl:
            show_json(progress_fields(progress), self._output)
            return
        if changed:
            note(line, "")
        if alert == last_alert:
            return
        if reason := progress.reason or (trouble and trouble.sentence):
            note(f"{name}: {reason}", "yellow")
        else:
            note(f"{name}: It goes on.")


async def attach(batches: Sequence[BatchControl], output: Format, environment: Environment) -> int:
    """Show the progress until all batches have ended, and return the exit code."""
    try:
        with _open_display(output) as show_progress:
            results = await asyncio.gather(*(watch(batch, show_progress) for batch in batches))
    except asyncio.CancelledError:
        _note_return(batches, environment)
        raise
    return print_results(results, output)


async def watch(batch: BatchControl, show_progress: ShowProgress) -> Progress:
    """Show the progress of a batch until it has ended or needs somebody; return the last one."""
    record = await batch.load_record()
    progress = Progress(name=batch.name, expected=record.expected_attempts)
    end = asyncio.ensure_future(batch.wait_until_finished())
    quiet_since, trouble = monotonic(), None
    try:
        while not end.done():
            newest = await batch.query_progress()
            if newest is not None and _changing_fields(newest) != _changing_fields(progress):
                quiet_since, trouble = monotonic(), None
            elif monotonic() - quiet_since > TROUBLE_CHECK_AFTER:
                trouble = await _find_trouble(batch, newest)
                quiet_since = monotonic()
            progress = newest or progress
            # Until it has begun, it does not count the results that exist already.
            if progress.started is not None or trouble is not None:
                show_progress(progress, trouble)
            if progress.blocked and not progress.running:
                return progress
            await asyncio.wait({end}, timeout=POLL_INTERVAL)
        return await end
    finally:
        end.cancel()


def print_results(results: Sequence[Progress], output: Format) -> int:
    """Print how the batches have ended, and return the exit code."""
    documents = [progress_fields(progress) for progress in results]
    if output is Format.json:
        show_json(documents[0] if len(documents) == 1 else documents, output)
    else:
        columns = stdout.width - 1 if stdout.is_terminal else None
        for progress, document in zip(results, documents, strict=True):
            lines = progress_lines(progress, columns=columns)
            show_result({"result": document}, output, *lines, closing_sentence(progress))
    return EXIT_OK if all(map(is_complete, results)) else EXIT_FAILED


def note_start(batch: BatchControl, environment: Environment, expected: int) -> None:
    """Print where to look at a batch that begins."""
    settings = environment.settings
    note(f"batch         {batch.name}", "bold")
    if batch.attached:
        note("  it runs already: this shows how far it is")
    note(f"  samples     {expected:,}, with their epochs")
    if settings.gateway is None:
        user = batch.folder.user_id
        note(f"  results     {settings.store}/users/{user}/batches/{batch.name}/results/")
    workflow_id = getattr(batch, "workflow_id", None)  # of none behind a gateway
    if environment.stack_info is not None and workflow_id is not None:
        page = f"{environment.stack_info.ui}/namespaces/default/workflows/{workflow_id}"
        note(f"  Temporal    {page}")
    note("")


def _note_return(batches: Sequence[BatchControl], environment: Environment) -> None:
    """Print how to return to batches that go on."""
    for name in (batch.name for batch in batches):
        progress = f"`perdure batch status {name}` says how far it is"
        if environment.own_stack is None:
            pause = f"`perdure batch pause {name}` pauses it"
            note(f"\nThe batch {name} goes on: {progress}, and {pause}.")
        else:
            note(
                f"\nThis command's stack ends with it, and the batch {name} waits. It goes "
                f"on with `perdure dev`; {progress}."
            )


@contextlib.contextmanager
def _open_display(output: Format) -> Iterator[ShowProgress]:
    """Yield what shows the progress; with `-o json`, only the result is printed."""
    if output is Format.json:
        yield lambda _, __: None
    elif output is Format.text and stdout.is_terminal:
        with live_area() as live:
            yield LiveDisplay(live).update
    else:
        yield LogDisplay(output).update


async def _find_trouble(batch: BatchControl, newest: Progress | None) -> Trouble | None:
    """Look for a reason why the batch does not go on; a pause is reason enough."""
    return None if newest is not None and newest.status == "paused" else await batch.diagnose()


def _changing_fields(progress: Progress) -> tuple[object, ...]:
    return (progress.status, progress.attempts, progress.finished, progress.running)
