"""Waiting for a call that blocks."""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")

# What no future can carry, and what would look as if the waiting task had been cancelled.
MISLEADING = (StopIteration, asyncio.CancelledError, CancelledError)


async def in_thread(call: Callable[[], T]) -> T:
    """What `call` returns or raises, from a thread of its own that sees our context variables.

    Not from the event loop's few threads: a tool may block for hours, and others need those. A
    daemon, so that a call which never returns does not keep the worker from ending.
    """
    future: Future[T] = Future()
    context = contextvars.copy_context()
    Thread(target=context.run, args=(_settle, future, call), name="tool", daemon=True).start()
    return await asyncio.wrap_future(future)


def _settle(future: Future[T], call: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(call())
    except MISLEADING as error:
        future.set_exception(RuntimeError(f"{type(error).__name__} was raised: {error}"))
    except BaseException as error:
        future.set_exception(error)
