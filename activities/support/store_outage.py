"""Patience of a step while the store is unavailable."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from perdure.activities.support.step import is_local
from perdure.storage.errors import StoreError, StoreUnavailable

logger = logging.getLogger(__name__)

T = TypeVar("T")

STORE_RETRY_INTERVAL = 1.0
"""Seconds between two tries while the store is unavailable."""


async def await_store(
    work: Callable[[], Awaitable[T]], errors: tuple[type[StoreError], ...] = (StoreUnavailable,)
) -> T:
    """Retry while the store is unavailable, as the step itself may not be retried.

    A local activity raises the error: the ordinary one that follows waits.
    """
    while True:
        try:
            return await work()
        except errors as error:
            if is_local():
                raise
            logger.warning("a call waits for the store: %s", error)
            await asyncio.sleep(STORE_RETRY_INTERVAL)
