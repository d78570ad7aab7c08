"""What keeps a turn from going on, told while it does."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from perdure.client.protocol import ConversationHandle
from perdure.errors import PerdureError

CHECK_SECONDS = 2.0
"""Seconds between two looks at whether the conversation goes on."""


@asynccontextmanager
async def telling_trouble(
    conversation: ConversationHandle, tell: Callable[[str], Awaitable[None]]
) -> AsyncIterator[None]:
    """Tell what is in the way of a conversation while inside, each cause once.

    A slow answer is none: it goes on by itself.
    """
    telling = asyncio.create_task(_tell_trouble(conversation, tell))
    try:
        yield
    finally:
        telling.cancel()
        await asyncio.wait([telling])


async def _tell_trouble(
    conversation: ConversationHandle, tell: Callable[[str], Awaitable[None]]
) -> None:
    told: set[str] = set()
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        with suppress(PerdureError):  # whoever reads the log reports it
            trouble = await conversation.diagnose()
            if trouble is not None and not trouble.slow and trouble.cause not in told:
                told.add(trouble.cause)
                await tell(trouble.sentence)
