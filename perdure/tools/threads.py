"""Blocking calls in threads of their own."""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")

# StopIteration cannot be set on a future; the others would look like a cancelled task.
MISLEADING_ERRORS = (StopIteration, asyncio.CancelledError, CancelledError)


async def run_in_thread(call: Callable[[], T]) -> T:
    """Run `call` in a thread of its own with our context variables; return or raise its outcome.

    Not in the event loop's thread pool: a tool may block for hours, and others need that. The
    thread is a daemon, so that a call which never returns does not keep the worker from ending.
    """
    future: Future[T] = Future()
    context = contextvars.copy_context()
    arguments = (_resolve_future, future, call)
    Thread(target=context.run, args=arguments, name="tool", daemon=True).start()
    return await asyncio.wrap_future(future)


def _resolve_future(future: Future[T], call: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(call())
    except MISLEADING_ERRORS as error:
        future.set_exception(RuntimeError(f"{type(error).__name__} was raised: {error}"))
    except BaseException as error:
        future.set_exception(error)
