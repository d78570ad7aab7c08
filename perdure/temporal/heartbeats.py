"""Heartbeats of the steps of a process: how often they are sent, and how long one may be missing.

Temporal writes every heartbeat to its database, so that many steps which only wait would take all
of a server. A process with many steps asks for longer timeouts, and sends fewer heartbeats.

Temporal tells a step in its answer to a heartbeat, and nowhere else, that it is cancelled. A step
whose workflow run is in the cache of the same process is told by that run to heartbeat at once.
"""

import asyncio
import contextvars
import weakref
from collections.abc import Callable, Iterable, Set
from datetime import timedelta
from typing import Any, NamedTuple

from perdure.temporal.timeouts import HEARTBEAT_INTERVAL

MAX_HEARTBEATS = 20.0
"""The heartbeats a second of a process from which on each of its steps sends fewer, as far as the
timeout allows it."""

MAX_INTERVAL_SHARE = 0.4
"""The longest interval of heartbeats, as a share of their timeout: two fit into it."""

MAX_FOREIGN_INTERVAL = 0.8
"""The longest interval in seconds of a step whose workflow run another process has: an interrupt
reaches it within a second."""

STEPS_PER_SECOND = 16.0
"""The steps of a process for each second of their heartbeat timeout: of more it is longer, so that
all of them together send 40 heartbeats a second."""

MAX_LONGER_TIMEOUT = 15.0
"""The longest timeout in seconds for the sake of fewer heartbeats."""

HURRY_SECONDS = 0.05
"""Seconds until the first heartbeat of a step that its run cancels: mostly, Temporal knows of it by
then."""


class StepKey(NamedTuple):
    """The identity of a step: its workflow run, and its name there."""

    run_id: str
    activity_id: str


class HeartbeatTimer:
    """A timer that heartbeats by calling `send`; most steps end before it first does.

    A `background` step is one for whose interruption nobody waits.
    """

    _at_work = 0
    """The number of steps of this process that have sent a heartbeat and go on."""

    def __init__(
        self, key: StepKey, timeout: float, send: Callable[[], None], *, background: bool = False
    ) -> None:
        self._key = key
        self._timeout = timeout
        self._send = send
        self._is_background = background
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()  # in which the step is known to the SDK
        self._has_sent = self._is_hurried = self._is_stopped = False
        _timers[key] = self
        self._schedule(self._choose_interval())

    def stop(self) -> None:
        self._is_stopped = True
        self._timer.cancel()
        if _timers.get(self._key) is self:  # and not of another attempt
            del _timers[self._key]
        if self._has_sent:
            HeartbeatTimer._at_work -= 1

    def hurry(self) -> None:
        """Heartbeat at once, and then as often as is allowed. May be called from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._hurry, context=self._context)

    def _hurry(self) -> None:
        if not self._is_hurried and not self._is_stopped:
            self._is_hurried = True
            self._timer.cancel()
            self._schedule(HURRY_SECONDS)

    def _schedule(self, seconds: float) -> None:
        self._timer = self._loop.call_later(seconds, self._beat)

    def _beat(self) -> None:
        if not self._has_sent:
            self._has_sent = True
            HeartbeatTimer._at_work += 1
        self._schedule(self._choose_interval())
        self._send()

    def _choose_interval(self) -> float:
        if self._is_hurried:
            return HEARTBEAT_INTERVAL.total_seconds()
        is_reachable = self._is_background or self._key in _open_steps
        return choose_interval(HeartbeatTimer._at_work, self._timeout, is_reachable)


class RunSteps:
    """The steps that a workflow run in the cache of this process waits for.

    The heartbeat timeout of one in a queue of `own_queues`, from which this process takes steps, is
    longer the more of them there are.
    """

    def __init__(self, run_id: str, own_queues: Set[str]) -> None:
        self._run_id = run_id
        self._own_queues = own_queues
        self._steps: dict[int, _OpenStep] = {}

    def follow(self, activation: Any, commands: Iterable[Any]) -> None:
        """Follow an activation of the run and its commands, and set the timeouts in these.

        Temporal does not compare timeouts with a history that is replayed.
        """
        for job in activation.jobs:
            if job.HasField("resolve_activity"):
                self._steps.pop(job.resolve_activity.seq, None)
        for command in commands:
            if command.HasField("schedule_activity"):
                self._open(command.schedule_activity)
            elif command.HasField("request_cancel_activity") and not activation.is_replaying:
                step = self._steps.get(command.request_cancel_activity.seq)
                timer = _timers.get(step.key) if step is not None else None
                if timer is not None:
                    timer.hurry()

    def _open(self, scheduled: Any) -> None:
        if scheduled.task_queue in self._own_queues:
            timeout = scheduled.heartbeat_timeout.ToTimedelta().total_seconds()
            longer = choose_timeout(len(_open_steps), timeout)
            if timeout and longer > timeout:
                scheduled.heartbeat_timeout.FromTimedelta(timedelta(seconds=longer))
        step = _OpenStep(StepKey(self._run_id, scheduled.activity_id))
        self._steps[scheduled.seq] = _open_steps[step.key] = step


class _OpenStep:
    """A step that a workflow run waits for."""

    def __init__(self, key: StepKey) -> None:
        self.key = key


_open_steps: weakref.WeakValueDictionary[StepKey, _OpenStep] = weakref.WeakValueDictionary()
"""The steps that the runs in the cache wait for; those of a run go with it."""

_timers: dict[StepKey, HeartbeatTimer] = {}


def choose_interval(steps: int, timeout: float, is_reachable: bool = True) -> float:
    """Return the seconds between two heartbeats of each of so many steps of a process.

    All of them together send `MAX_HEARTBEATS` a second, or more where the interval would become
    too long for the timeout, or for an interrupt that has no other way to the step.
    """
    fair = min(steps / MAX_HEARTBEATS, MAX_INTERVAL_SHARE * timeout)
    if not is_reachable and timeout <= MAX_LONGER_TIMEOUT:  # an agent may ask for even longer ones
        fair = min(fair, MAX_FOREIGN_INTERVAL)
    return max(HEARTBEAT_INTERVAL.total_seconds(), fair)


def choose_timeout(steps: int, timeout: float) -> float:
    """Return the heartbeat timeout of a step beside so many others in seconds, or `timeout`."""
    return max(timeout, min(steps / STEPS_PER_SECOND, MAX_LONGER_TIMEOUT))
