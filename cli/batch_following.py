"""Following batches to their end: what is shown of them meanwhile, and how the command exits."""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from time import monotonic

from rich.live import Live
from rich.text import Text

from cli.batch_shown import end_of, is_whole, line_of, lines_of, result_of
from cli.failures import FAILED, OK
from cli.output import Format, note, plain, show, show_json, stdout
from cli.stack import Place
from client.batch_handle import BatchHandle
from client.trouble import Trouble
from evaluation.progress import Progress

EVERY = 1.0
"""Seconds between two looks at how far it is."""

TROUBLED = 5.0
"""Seconds without news after which it is asked why."""

LINES = 5.0
"""Seconds between two lines of a log."""


class Board(ABC):
    """Where it is shown how far batches are."""

    @abstractmethod
    def tell(self, progress: Progress, trouble: Trouble | None) -> None: ...


class Silent(Board):
    """For a program that wants the result alone."""

    def tell(self, progress: Progress, trouble: Trouble | None) -> None:
        pass


class Drawn(Board):
    """On a terminal: all batches, each over several lines."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._shown: dict[str, list[Text]] = {}

    def tell(self, progress: Progress, trouble: Trouble | None) -> None:
        self._shown[progress.name] = lines_of(progress, trouble.sentence if trouble else None)
        self._live.update(self.drawn, refresh=True)

    @property
    def drawn(self) -> Text:
        """As much as there is room for."""
        lines = [line.copy() for one in self._shown.values() for line in one]
        for line in lines:
            line.truncate(stdout.width - 1, overflow="ellipsis")
        return Text("\n").join(lines[: stdout.height - 1])


class Lines(Board):
    """A line when something has changed, not too often; at once where somebody has to act."""

    def __init__(self, output: Format) -> None:
        self._output = output
        self._last: dict[str, str] = {}
        self._next: dict[str, float] = {}
        self._told: dict[str, tuple[str | None, str | None]] = {}

    def tell(self, progress: Progress, trouble: Trouble | None) -> None:
        name, line, now = progress.name, line_of(progress), monotonic()
        calls = (progress.reason, trouble.cause if trouble else None)
        called = calls != self._told.get(name, (None, None))
        changed = line != self._last.get(name)
        if not called and not (changed and now >= self._next.get(name, 0.0)):
            return
        self._last[name], self._next[name], self._told[name] = line, now + LINES, calls
        if self._output is Format.jsonl:
            show_json(result_of(progress), self._output)
            return
        if changed:
            note(line, "")
        if called and (why := progress.reason or (trouble.sentence if trouble else None)):
            note(f"{name}: {why}", "yellow")
        elif called:
            note(f"{name}: It goes on.")


async def attach(batches: Sequence[BatchHandle], output: Format, where: Place) -> int:
    """Show how far they are until all have come to their end; the exit code."""
    try:
        with _board(output) as board:
            ends = await asyncio.gather(*(watch(one, board) for one in batches))
    except asyncio.CancelledError:
        _leave(batches, where)
        raise
    return conclude(ends, output)


async def watch(batch: BatchHandle, board: Board) -> Progress:
    """Tell how far a batch is until it has come to its end; how it stands then."""
    kept = await batch.kept()
    progress = Progress(name=batch.name, expected=kept.expected)
    ended = asyncio.ensure_future(batch.finished())
    quiet_since, trouble = monotonic(), None
    try:
        while not ended.done():
            found = await batch.asked()
            if found is not None and _counts(found) != _counts(progress):
                quiet_since, trouble = monotonic(), None
            elif monotonic() - quiet_since > TROUBLED:
                trouble = await _trouble(batch, found)
                quiet_since = monotonic()
            progress = found or progress
            # Before it has begun, it does not know yet what has a result already.
            if progress.started is not None or trouble is not None:
                board.tell(progress, trouble)
            await asyncio.wait({ended}, timeout=EVERY)
        return await ended
    finally:
        ended.cancel()


def conclude(ends: Sequence[Progress], output: Format) -> int:
    """Print how batches have ended; the exit code tells it too."""
    if output is Format.text:
        for one in ends:
            for line in lines_of(one):
                show(line)
            show(end_of(one))
    elif output is Format.json:
        results = [result_of(one) for one in ends]
        show_json(results[0] if len(results) == 1 else results, output)
    else:
        for one in ends:
            show_json({"result": result_of(one)}, output)
    return OK if all(map(is_whole, ends)) else FAILED


def introduce(batch: BatchHandle, where: Place, expected: int) -> None:
    """Where to look at a batch that begins."""
    settings = where.settings
    note(f"batch         {batch.name}", "bold")
    if batch.attached:
        note("  it runs already: this shows how far it is")
    note(f"  samples     {expected:,}, with their epochs")
    note(f"  results     {settings.store}/users/{settings.user}/batches/{batch.name}/results/")
    if where.info is not None:
        page = f"{where.info.ui}/namespaces/default/workflows/{batch.workflow_id}"
        note(f"  Temporal    {page}")
    note("")


def _leave(batches: Sequence[BatchHandle], where: Place) -> None:
    """How to come back to batches that go on."""
    for name in (one.name for one in batches):
        if where.own is None:
            note(
                f"\nThe batch {plain(name)} goes on: `perdure batch status {name}` says how far it "
                f"is, and `perdure batch pause {name}` pauses it."
            )
        else:
            note(
                f"\nThis command's stack ends with it, and the batch {plain(name)} waits. It goes "
                f"on with `perdure dev`; `perdure batch status {name}` says how far it is."
            )


@contextlib.contextmanager
def _board(output: Format) -> Iterator[Board]:
    if output is Format.json:
        yield Silent()
    elif output is Format.text and stdout.is_terminal:
        below = Live(console=stdout, transient=True, auto_refresh=False, vertical_overflow="crop")
        with below:
            yield Drawn(below)
    else:
        yield Lines(output)


async def _trouble(batch: BatchHandle, found: Progress | None) -> Trouble | None:
    """Nobody wonders why a batch that is paused does not go on."""
    return None if found is not None and found.status == "paused" else await batch.trouble()


def _counts(progress: Progress) -> tuple[object, ...]:
    return (progress.status, progress.attempts, progress.finished, progress.running)
