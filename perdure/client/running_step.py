"""A running step of a conversation, as its clients see it."""

from collections.abc import Iterable
from typing import NamedTuple

from perdure.agent.loop.start import ConversationStatus
from perdure.events.entry import Origin
from perdure.events.status import Loading, ModelRetry, StatusDetail
from perdure.storage.cache import Cache

MAX_ENDED_STEPS = 64
"""Steps that are known to have ended: a look at Temporal may be older than their events."""

STEP_POLL_INTERVAL = 0.25
"""Seconds between two polls of running steps: as often as they heartbeat."""


class RunningStep(NamedTuple):
    """A running step, such as `llm.chat` or `tool.call`.

    The events that it appends have `run_id` and `activity_id` as their origin.
    """

    kind: str
    activity_id: str
    attempt: int
    text: str
    """The end of this attempt's output so far; a new attempt starts with none."""
    run_id: str
    failure: str | None = None
    """The reason why the attempt before failed."""
    offset: int | None = None
    """The number of characters before the text; None if the worker does not say."""
    loading: tuple[Loading, ...] = ()
    """What the step prepares before it goes on."""
    retry: ModelRetry | None = None
    """The failure of the model's attempt before, while it is asked again."""


class StepsAtWork:
    """The running steps that have written no event, though a look at Temporal may be late."""

    def __init__(self) -> None:
        self._ended: Cache[tuple[str, str], bool] = Cache(MAX_ENDED_STEPS)
        self.current: tuple[RunningStep, ...] = ()

    def observe(self, steps: Iterable[RunningStep]) -> tuple[RunningStep, ...]:
        """Take what Temporal says of running steps; return those that have not ended."""
        self.current = tuple(
            step for step in steps if self._ended.get((step.run_id, step.activity_id)) is None
        )
        return self.current

    def settle(self, origin: Origin) -> tuple[str, str]:
        """Take the origin of an entry, which ends its step; return the step's run and item."""
        ended = find_step(origin)
        self._ended.put(ended, True)
        self.observe(self.current)
        return ended


def find_step(origin: Origin) -> tuple[str, str]:
    """Return the run and the item of the step that an entry comes from, without its part."""
    return origin.run, origin.activity.partition(" ")[0]


def with_steps(status: ConversationStatus, steps: Iterable[RunningStep]) -> ConversationStatus:
    """Return the status with what the steps at work say: that they load, or ask a model again.

    A conversation that is at rest by its log is not at work: its steps only save it.
    """
    if status.status not in ("running", "idle"):
        return status
    shown = tuple(steps)
    loading = tuple(each for step in shown for each in step.loading)
    retry = next((step.retry for step in shown if step.retry), None)
    if not (loading or retry):
        return status
    detail = (status.detail or StatusDetail()).model_copy(
        update={"loading": loading, "retry": retry}
    )
    changes = {"detail": detail, **({"phase": "loading"} if loading else {})}
    return status.model_copy(update=changes)
