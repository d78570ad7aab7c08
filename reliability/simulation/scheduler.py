"""An event loop whose time is made up: one number decides all that happens, and in which order.

Whatever takes time in the world (a request, its answer, a pause) is due at a moment that the seed
gives it. Nothing really waits, no thread is started, and the same seed tells the same story.
"""

import asyncio
import contextlib
import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

MAX_CALLBACKS = 200_000
"""Callbacks after which a schedule is taken to go on for ever."""


@dataclass(eq=False)
class Process:
    """A worker's process. Once it is not alive, nothing that it was about to do happens."""

    name: str
    alive: bool = True


PROCESS: ContextVar[Process | None] = ContextVar("PROCESS", default=None)


class Endless(Exception):
    """Everybody waits for ever, or is busy for ever."""


class ScheduledCallback:
    """A callback, when it is due, and the process that it happens in; an `asyncio.TimerHandle`."""

    __slots__ = ("_when", "args", "callback", "context", "gone", "process")

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context | None,
    ) -> None:
        self._when = when
        self.callback = callback
        self.args = args
        self.context = copy_context() if context is None else context
        self.process = self.context.get(PROCESS)
        self.gone = False

    def when(self) -> float:
        return self._when

    def cancel(self) -> None:
        self.gone = True

    def cancelled(self) -> bool:
        return self.gone

    def take(self) -> None:
        if not self.gone and (self.process is None or self.process.alive):
            self.context.run(self.callback, *self.args)


class SimulatedLoop(asyncio.AbstractEventLoop):
    """`dice` is the only chance there is; `story` is what happened, where somebody wants to know.

    `crash` is asked before and after each request of a process whether it dies there.
    """

    def __init__(self, seed: int, *, telling: bool = False) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.turns = 0
        self.trace: list[str] | None = [] if telling else None
        self.problems: list[dict[str, Any]] = []
        self.crash: Callable[[Process], bool] = lambda process: False  # noqa: ARG005
        self._ready: deque[ScheduledCallback] = deque()
        self._due: list[tuple[float, int, ScheduledCallback]] = []
        self._order = itertools.count()
        self._tasks: list[tuple[asyncio.Task[Any], Context]] = []
        self._over = False

    def play(self, story: Coroutine[Any, Any, T]) -> T:
        """Run to the end of `story`. Raises Endless where it has none."""
        asyncio.events._set_running_loop(self)
        try:
            main: asyncio.Task[T] = self.create_task(story)
            while not main.done():
                self._next()
            return main.result()
        finally:
            self._drop_crashed()
            asyncio.events._set_running_loop(None)

    def record(self, what: str) -> None:
        if self.trace is not None:
            process = PROCESS.get()
            self.trace.append(f"{self.now:9.3f} {process.name if process else '-':8} {what}")

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def delay(self) -> float:
        """Seconds that something takes: mostly a moment, at times very long."""
        luck = self.random.random()
        if luck < 0.85:
            return luck * 0.05
        return luck * (0.5 if luck < 0.98 else 5.0)

    def elsewhere(self, delay: float, callback: Callable[..., object], *args: Any) -> None:
        """Have something happen that no crash can stop any more."""
        self._put(ScheduledCallback(self.now + delay, callback, args, Context()))

    def _next(self) -> None:
        self.turns += 1
        if self.turns > MAX_CALLBACKS:
            raise Endless("it goes on and on")
        if self._ready:
            self._ready.popleft().take()
        elif self._due:
            self.now, _, turn = heapq.heappop(self._due)
            turn.take()
        else:
            raise Endless("everybody waits for somebody else")

    def _put(self, turn: ScheduledCallback) -> ScheduledCallback:
        heapq.heappush(self._due, (turn.when(), next(self._order), turn))
        return turn

    def _drop_crashed(self) -> None:
        """Let go of what crashed processes were doing."""
        self._over = True
        self._ready.clear()
        self._due.clear()
        for task, context in self._tasks:
            if not task.done():
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                with contextlib.suppress(RuntimeError):  # it waits for something in `finally`
                    context.run(task.get_coro().close)
        self._tasks.clear()

    # What asyncio and S3Store ask of a loop.

    def time(self) -> float:
        return self.now

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return not self._over

    def is_closed(self) -> bool:
        return self._over

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Any,
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[Any]:
        context = copy_context() if context is None else context
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name, context=context)
        self._tasks.append((task, context))
        return task

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> ScheduledCallback:
        turn = ScheduledCallback(self.now, callback, args, context)
        if not self._over:
            self._ready.append(turn)
        return turn

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> ScheduledCallback:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> ScheduledCallback:
        turn = ScheduledCallback(when, callback, args, context)
        return turn if self._over else self._put(turn)

    def run_in_executor(  # type: ignore[override]
        self,
        executor: Any,  # noqa: ARG002
        func: Callable[..., Any],
        *args: Any,
    ) -> Any:
        """Simulate a thread: it begins some time later, and its result comes some time later."""
        future, process = self.create_future(), PROCESS.get()

        def dies() -> bool:
            return process is not None and self.crash(process)

        def work() -> None:
            if dies():
                return
            try:
                result, error = func(*args), None
            except Exception as raised:
                result, error = None, raised
            if not dies():
                self.call_later(self.delay(), deliver, result, error)

        def deliver(result: Any, error: Exception | None) -> None:
            if future.cancelled():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        self.call_later(self.delay(), work)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self._over:
            self.problems.append(context)
