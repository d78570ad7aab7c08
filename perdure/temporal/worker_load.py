"""The load of a worker process: the steps that use it now, apart from those that only wait.

A process uses one core. Temporal hands out steps by users, but not the workflow tasks that follow
them: those come in the order in which the steps ended. Were many steps at work at once, the next
one of a conversation would wait behind the workflow tasks of all others, whoever has these.
"""

import contextlib
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from time import monotonic

MAX_BUSY_STEPS = 16
"""The number of steps that use a process at once, where several users have some; those that wait
for a model or a tool come on top."""

MAX_BUSY_STEPS_OF_ONE = 24
"""The same where all are one user's: of more at once each costs less, and no other user waits."""

MAX_BUSY_SECONDS = 1.0
"""The time after which a step counts as one that waits for something."""

ABSENCE_SECONDS = 5.0
"""The time without a step after which a user no longer counts as one who uses the process."""

EAGER_ROUND = 32
"""Of so many steps that Temporal's SDK would begin eagerly, past their queue, the last does not, so
that all conversations of a user go on."""

EAGER_STEPS = 8
"""The same for each workflow run, where several users have steps: of so many of its steps the last
waits in the queue. A step that comes from there costs twice as much."""

RUN_PAUSE = 0.02
"""Seconds, for each user who has steps, in which a busy process takes no other workflow run behind
one of a user of whom it took another of late."""

MAX_RUN_PAUSE = 2.0
"""The longest such pause in seconds, of several runs behind each other."""


class WorkflowRun:
    """A workflow run that a process has in its cache; `user` is its fairness key.

    One of a batch (`is_of_batch`) has a lower priority than what people wait for.
    """

    def __init__(self, user: str, is_of_batch: bool = False) -> None:
        self.user = user
        self.is_of_batch = is_of_batch
        self.eager_steps = 0


class WorkerLoad:
    """The steps that use a process, and those whose workflow run has not gone on in it since.

    There are `limit` at most, or `limit_of_one` where all are one user's. `on_less` is called, from
    any thread, when there are fewer. `at_work` counts all steps, those that wait included,
    and `queues` are those from which the process takes them.
    """

    def __init__(
        self, limit: int = MAX_BUSY_STEPS, limit_of_one: int = MAX_BUSY_STEPS_OF_ONE
    ) -> None:
        self.limit = limit
        self.limit_of_one = limit_of_one
        self.on_less: Callable[[], None] = _do_nothing
        self.at_work = 0
        self.queues = set[str]()
        self._began: dict[_Step | WorkflowRun, float] = {}
        self._runs: weakref.WeakValueDictionary[str, WorkflowRun] = weakref.WeakValueDictionary()
        self._places: deque[WorkflowRun] = deque()
        self._offers = 0
        self._open_steps = Counter[str]()
        self._left_at: dict[str, float] = {}
        self._took_run_at: dict[str, float] = {}
        self._pause_ends = 0.0

    @contextlib.contextmanager
    def count_step(self, run_id: str, user: str) -> Iterator[None]:
        """Count a step of a user while the body runs, and then until its workflow run goes on.

        The user is "" where Temporal does not say whose step it is: of one that began eagerly.
        """
        if not user and (run := self._runs.get(run_id)) is not None:
            user = run.user
        step = _Step(self, user)
        self.add(step)
        if user:
            self._open_steps[user] += 1
        token = _current.set(step)
        try:
            yield
        finally:
            _current.reset(token)
            if (run := self._runs.get(run_id)) is not None:
                self.add(run)
            if user:
                self._leave(user)
            self.remove(step)

    def keep_run(self, run_id: str, run: WorkflowRun) -> None:
        """Note that the process has a workflow run in its cache, for as long as `run` is kept.

        It is counted until it goes on: it begins or is replayed.
        """
        self._runs[run_id] = run
        self.add(run)
        _drop_old(self._took_run_at)
        users = self._count_users()
        if run.user in self._took_run_at and users > 1 and len(self._began) > self.limit / 2:
            pause = self.seconds_to_next_run() + RUN_PAUSE * users
            self._pause_ends = monotonic() + min(pause, MAX_RUN_PAUSE)
        self._took_run_at[run.user] = monotonic()

    def seconds_to_next_run(self) -> float:
        """Return the seconds until the process should take another run that it has not cached.

        To begin one costs as much as a step, and Temporal hands out those of a user who has many
        while others have none that wait.
        """
        return max(0.0, self._pause_ends - monotonic())

    def add(self, key: "_Step | WorkflowRun") -> None:
        """Count a step, or a workflow run that has yet to go on."""
        self._began[key] = monotonic()

    def remove(self, key: "_Step | WorkflowRun") -> None:
        """Count a step no more, or a workflow run that went on. May be called from any thread."""
        if self._began.pop(key, None) is not None:
            self.on_less()

    def go_on(self, run: WorkflowRun, has_next_step: bool) -> None:
        """Count a workflow run no more that went on, or keep its place for its next step.

        May be called from any thread, as the methods below.
        """
        if not has_next_step:
            self.remove(run)
        elif run in self._began:
            self._places.append(run)

    def take_place(self, others_wait: bool) -> bool:
        """Give a kept place to a step that begins eagerly; False if others come first."""
        while self._places:
            try:
                run = self._places.popleft()
            except IndexError:  # another thread took it in this moment
                return False
            if others_wait and not self._may_be_eager(run):
                self.remove(run)
                return False
            if self._began.pop(run, None) is not None:
                return True
        return False

    def count_free(self) -> int:
        """Count the steps that may begin; below zero if more are busy than should be."""
        while (oldest := self._find_oldest()) and oldest[1] + MAX_BUSY_SECONDS <= monotonic():
            self._began.pop(oldest[0], None)
        limit = self.limit if self._count_users() > 1 else self.limit_of_one
        return limit - len(self._began)

    def _leave(self, user: str) -> None:
        self._open_steps[user] -= 1
        if not self._open_steps[user]:
            del self._open_steps[user]
            self._left_at[user] = monotonic()

    def _may_be_eager(self, run: WorkflowRun) -> bool:
        """Tell whether the next step of a run may begin before those that wait in the queue.

        Where several users have steps, each may have its share of the process in that way.
        """
        users = self._count_users()
        if users < 2:
            self._offers += 1
            return bool(self._offers % EAGER_ROUND)
        busy = sum(key.user == run.user for key in list(self._began))
        run.eager_steps += 1
        is_eager = (
            not run.is_of_batch
            and run.eager_steps < EAGER_STEPS
            and busy <= max(1, self.limit // users)
        )
        if not is_eager:
            run.eager_steps = 0
        return is_eager

    def _count_users(self) -> int:
        """Count the users who have steps, or had some of late."""
        _drop_old(self._left_at)
        return len(self._open_steps.keys() | self._left_at.keys())

    def seconds_to_next_end(self) -> float | None:
        """Return when the oldest busy step will count as one that waits; None without any."""
        oldest = self._find_oldest()
        return None if oldest is None else oldest[1] + MAX_BUSY_SECONDS - monotonic()

    def _find_oldest(self) -> "tuple[_Step | WorkflowRun, float] | None":
        while True:
            try:
                return next(iter(self._began.items()), None)
            except RuntimeError:  # another thread removed one in this moment
                continue


class _Step:
    """A step of a user, by which the process is busy unless it waits."""

    def __init__(self, load: WorkerLoad, user: str) -> None:
        self.load = load
        self.user = user


_current: ContextVar[_Step | None] = ContextVar("step", default=None)


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """Leave the process to other steps while the body waits for a model, a command or a server."""
    step = _current.get()
    if step is None:
        yield
        return
    step.load.remove(step)
    try:
        yield
    finally:
        step.load.add(step)


def _drop_old(moments: dict[str, float]) -> None:
    for user, moment in list(moments.items()):
        if moment + ABSENCE_SECONDS <= monotonic():
            moments.pop(user, None)


def _do_nothing() -> None:
    """Do nothing."""
