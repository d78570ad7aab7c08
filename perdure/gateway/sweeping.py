"""Deleting what is left of expired sessions, tickets and requests, now and then."""

import asyncio
import logging
import random
from datetime import UTC, datetime

from perdure.storage.credentials.tokens import delete_expired_tokens
from perdure.storage.errors import StoreError
from perdure.storage.foreign.begun_requests import delete_old_requests
from perdure.storage.store import Store

logger = logging.getLogger("perdure.gateway")

INTERVAL = 3600.0
"""Seconds between two sweeps of one process."""


async def sweep_tokens(store: Store) -> None:
    """Delete what has expired, forever; gateways that start together sweep at different times."""
    while True:
        await asyncio.sleep(INTERVAL * random.uniform(0.5, 1.5))
        try:
            await delete_expired_tokens(store, datetime.now(UTC))
            await delete_old_requests(store, datetime.now(UTC))
        except StoreError as error:
            logger.warning("What has expired is not deleted yet: %s", error)
