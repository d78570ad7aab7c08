"""The texts of the steps at work, as parts that clients put together.

Temporal has the newest 2,000 characters of a step's text, and a look at it may come too late for
some of them. A part says where it begins, so that it can also replace what was sent before.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perdure.api.frames import DeltaFrame, ItemAbortedFrame
from perdure.client.running_step import RunningStep, StepsAtWork
from perdure.client.turn import find_growth, spoken_text
from perdure.events.entry import Entry

MODEL_STEP = "llm.chat"
"""The step whose text is that of its event, once it is whole."""

TOOL_STEP = "tool.call"
"""The step whose text may be the end of its output alone."""

MAX_KNOWN_CHARS = 256 * 1024
"""Characters that are kept of a text, for clients that attach in the middle: its end."""


@dataclass
class _StepText:
    """The text of one step, of which `start` characters before `text` are not known."""

    step: RunningStep
    attempt: int
    start: int = 0
    text: str = ""
    order: int = 0
    """The number of parts that this attempt has had."""
    was_sent: bool = False

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    def make_part(self, offset: int, text: str) -> DeltaFrame:
        """Make the part that puts `text` behind the first `offset` characters."""
        if self.start <= offset <= self.end:
            self.text = self.text[: offset - self.start] + text
        else:
            self.start, self.text = offset, text
        if (surplus := len(self.text) - MAX_KNOWN_CHARS) > 0:
            self.start, self.text = self.start + surplus, self.text[surplus:]
        self.order, self.was_sent = self.order + 1, True
        return self._frame(offset, text)

    def so_far(self) -> DeltaFrame:
        """Make the first part for a client that attaches in the middle."""
        return self._frame(self.start, self.text)

    def _frame(self, offset: int, text: str) -> DeltaFrame:
        return DeltaFrame(
            item_id=self.step.activity_id,
            run=self.step.run_id,
            step=self.step.kind,
            attempt=self.attempt,
            order=self.order - 1,
            offset=offset,
            text=text,
        )


class StepTexts:
    """The texts of all steps of a conversation that are at work."""

    def __init__(self) -> None:
        self._texts: dict[str, _StepText] = {}
        self.at_work = StepsAtWork()

    def observe(self, steps: Iterable[RunningStep]) -> list[DeltaFrame]:
        """Take what Temporal says of running steps; return the parts that are new."""
        parts: list[DeltaFrame] = []
        for step in self.at_work.observe(steps):
            known = self._texts.get(step.activity_id)
            if known is None or known.step.run_id != step.run_id:
                known = self._texts[step.activity_id] = _StepText(step, step.attempt)
            parts += _grow(known, step)
        return parts

    def settle(self, entry: Entry) -> list[DeltaFrame]:
        """Take an entry of the log, which ends the text of its step.

        Returns the part that makes the text of a model whole, if any of it was sent.
        """
        run_id, item_id = self.at_work.settle(entry.origin)
        known = self._texts.get(item_id)
        if known is None or known.step.run_id != run_id:
            return []
        del self._texts[item_id]
        whole = spoken_text(entry) if known.step.kind == MODEL_STEP else ""
        return _complete(known, whole) if known.was_sent and whole else []

    def list_gone(self, steps: Sequence[RunningStep]) -> list[str]:
        """List the items whose steps are not among those that run."""
        running = {(step.run_id, step.activity_id) for step in steps}
        return [
            item_id
            for item_id, known in self._texts.items()
            if (known.step.run_id, item_id) not in running
        ]

    def abort(self, item_ids: Iterable[str]) -> list[ItemAbortedFrame]:
        """Drop texts of steps that have ended without an event."""
        dropped = [(item_id, self._texts.pop(item_id, None)) for item_id in item_ids]
        return [
            ItemAbortedFrame(item_id=item_id, run=known.step.run_id)
            for item_id, known in dropped
            if known is not None and known.was_sent
        ]

    def so_far(self) -> list[DeltaFrame]:
        """Return the text of each step that clients have a part of."""
        return [known.so_far() for known in self._texts.values() if known.was_sent]


def _grow(known: _StepText, step: RunningStep) -> list[DeltaFrame]:
    if step.attempt != known.step.attempt:
        # An attempt on another queue is the first one there.
        known.attempt = max(known.attempt + 1, step.attempt)
        was_sent = known.was_sent
        known.start, known.text, known.order = 0, "", 0
        known.step = step
        if was_sent and not step.text:
            return [known.make_part(0, "")]
    known.step = step
    if not step.text:
        return []
    offset, text = _find_part(known, step)
    return [known.make_part(offset, text)] if text or offset < known.end else []


def _find_part(known: _StepText, step: RunningStep) -> tuple[int, str]:
    """Return where the new part of a text begins, and the part."""
    if step.offset is None or step.kind == TOOL_STEP:
        return known.end, find_growth(known.text, step.text)
    begin = step.offset - known.start
    if not 0 <= begin <= len(known.text):
        return step.offset, step.text
    same = _count_shared(known.text[begin:], step.text)
    return step.offset + same, step.text[same:]


def _complete(known: _StepText, whole: str) -> list[DeltaFrame]:
    """Return the part that turns the known text into the whole one."""
    if known.start:
        return [known.make_part(0, whole)]
    same = _count_shared(known.text, whole)
    if same == len(whole) == len(known.text):
        return []
    return [known.make_part(same, whole[same:])]


def _count_shared(first: str, second: str) -> int:
    """Count the characters that both texts begin with."""
    if second.startswith(first):
        return len(first)
    pairs = enumerate(zip(first, second, strict=False))
    return next((nth for nth, (one, other) in pairs if one != other), len(second))
