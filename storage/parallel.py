"""Requests in parallel, their answers in order."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

MAX_PARALLEL = 64


async def map_parallel(
    request: Callable[[T], Awaitable[R]],
    items: Iterable[T],
    first: int = MAX_PARALLEL,
    most: int = MAX_PARALLEL,
) -> AsyncGenerator[R, None]:
    """Yield what `request` returns for each item, in order, with at most `most` under way.

    At first it is `first`, which doubles whenever as many answers were taken: a caller who stops
    has hardly more requests under way than answers. Close the generator then, which cancels them.
    """
    left, width, taken = iter(items), min(first, most), 0
    pending: deque[asyncio.Future[R]] = deque()
    try:
        while True:
            for _, item in zip(range(width - len(pending)), left):  # noqa: B905
                pending.append(asyncio.ensure_future(request(item)))
            if not pending:
                return
            yield await pending[0]
            pending.popleft()
            taken += 1
            if taken >= width:
                width, taken = min(2 * width, most), 0
    finally:
        for future in pending:
            future.cancel()
            future.add_done_callback(_retrieve_error)


def _retrieve_error(future: asyncio.Future[R]) -> None:
    """Say that somebody has seen the error of a request that was sent in vain."""
    if not future.cancelled():
        future.exception()
