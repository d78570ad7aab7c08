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
that all conversations of a user go on. Where several users have steps, none does."""


class WorkerLoad:
    """The steps that use a process, and those whose workflow run has not gone on in it since.

    There are `limit` at most, or `limit_of_one` where all are one user's. `on_less` is called, from
    any thread, when there are fewer. `at_work` counts all steps, those that wait included.
    """

    def __init__(
        self, limit: int = MAX_BUSY_STEPS, limit_of_one: int = MAX_BUSY_STEPS_OF_ONE
    ) -> None:
        self.limit = limit
        self.limit_of_one = limit_of_one
        self.on_less: Callable[[], None] = _do_nothing
        self.at_work = 0
        self._began: dict[object, float] = {}
        self._runs: weakref.WeakValueDictionary[str, object] = weakref.WeakValueDictionary()
        self._places: deque[str] = deque()
        self._offers = 0
        self._open_steps = Counter[str]()
        self._left_at: dict[str, float] = {}

    @contextlib.contextmanager
    def count_step(self, run_id: str, user: str) -> Iterator[None]:
        """Count a step of a user while the body runs, and then until its workflow run goes on.

        The user is "" where Temporal does not say whose step it is: of one that began eagerly.
        """
        step = _Step(self)
        self.add(step)
        if user:
            self._open_steps[user] += 1
        token = _current.set(step)
        try:
            yield
        finally:
            _current.reset(token)
            if run_id in self._runs:
                self.add(run_id)
            if user:
                self._leave(user)
            self.remove(step)

    def keep_run(self, run_id: str, instance: object) -> None:
        """Note that the process has a workflow run in its cache, for as long as `instance` is."""
        self._runs[run_id] = instance

    def add(self, key: object) -> None:
        """Count a step, or a workflow run that has yet to go on."""
        self._began[key] = monotonic()

    def remove(self, key: object) -> None:
        """Count a step no more, or a workflow run that went on. May be called from any thread."""
        if self._began.pop(key, None) is not None:
            self.on_less()

    def go_on(self, run_id: str, has_next_step: bool) -> None:
        """Count a workflow run no more that went on, or keep its place for its next step.

        May be called from any thread, as the methods below.
        """
        if not has_next_step:
            self.remove(run_id)
        elif run_id in self._began:
            self._places.append(run_id)

    def take_place(self, others_wait: bool) -> bool:
        """Give a kept place to a step that begins eagerly; False if others come first."""
        while self._places:
            try:
                run_id = self._places.popleft()
            except IndexError:  # another thread took it in this moment
                return False
            if others_wait and not self._may_be_eager():
                self.remove(run_id)
                return False
            if self._began.pop(run_id, None) is not None:
                return True
        return False

    def count_free(self) -> int:
        """Count the steps that may begin; below zero if more are busy than should be."""
        while (oldest := self._find_oldest()) and oldest[1] + MAX_BUSY_SECONDS <= monotonic():
            self._began.pop(oldest[0], None)
        limit = self.limit if self._has_several_users() else self.limit_of_one
        return limit - len(self._began)

    def _leave(self, user: str) -> None:
        self._open_steps[user] -= 1
        if not self._open_steps[user]:
            del self._open_steps[user]
            self._left_at[user] = monotonic()

    def _may_be_eager(self) -> bool:
        self._offers += 1
        return bool(self._offers % EAGER_ROUND) and not self._has_several_users()

    def _has_several_users(self) -> bool:
        for user, left_at in list(self._left_at.items()):
            if left_at + ABSENCE_SECONDS <= monotonic() or user in self._open_steps:
                self._left_at.pop(user, None)
        return len(self._open_steps) + len(self._left_at) > 1

    def seconds_to_next_end(self) -> float | None:
        """Return when the oldest busy step will count as one that waits; None without any."""
        oldest = self._find_oldest()
        return None if oldest is None else oldest[1] + MAX_BUSY_SECONDS - monotonic()

    def _find_oldest(self) -> tuple[object, float] | None:
        while True:
            try:
                return next(iter(self._began.items()), None)
            except RuntimeError:  # another thread removed one in this moment
                continue


class _Step:
    """A step, by which the process is busy unless it waits."""

    def __init__(self, load: WorkerLoad) -> None:
        self.load = load


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


def _do_nothing() -> None:
    """Do nothing."""
