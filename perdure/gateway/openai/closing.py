"""Conversations that end with one turn, and are closed behind it."""

import asyncio
import logging
from contextlib import aclosing, suppress

from perdure.errors import ClientError
from perdure.gateway.gateway import Gateway
from perdure.gateway.turns.turns import TurnKey
from perdure.storage.errors import StoreError

logger = logging.getLogger("perdure.gateway")


class Closing:
    """The conversations that are closed at the end of a turn, if this process sees it.

    Otherwise their workflows end by themselves after a while, as those of all that rest do.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._tasks: dict[TurnKey, asyncio.Task[None]] = {}

    def close_after(self, key: TurnKey) -> None:
        """Close the conversation of a turn once that has ended."""
        if key not in self._tasks:
            task = self._tasks[key] = asyncio.create_task(self._close(key))
            task.add_done_callback(lambda _: self._tasks.pop(key, None))

    async def stop(self) -> None:
        """Stop waiting for ends."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _close(self, key: TurnKey) -> None:
        with suppress(ClientError, StoreError):
            async with aclosing(self._gateway.turns.find(key).listen()) as parts:
                async for _ in parts:
                    pass
            client = self._gateway.client_for(key.user_id)
            await client.conversation(key.conversation_id).close()
