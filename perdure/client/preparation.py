"""Checks before a message is sent, and the images that are stored for it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from perdure.agent.loop.inbox import UserMessage
from perdure.agent.loop.state import State
from perdure.agent.spec import Agent, ModelSpec
from perdure.client.images import Image, make_message, store_images
from perdure.client.open_state import require_open
from perdure.client.recording import (
    RecordedEvents,
    first_message,
    parse_recording,
    store_recording,
)
from perdure.storage.log.event_log import EventLog


async def prepare_start(
    log: EventLog,
    spec: Agent,
    text: str | None,
    message_id: str | None,
    images: Sequence[Image],
    replay: RecordedEvents | None,
) -> tuple[Agent, UserMessage | None]:
    """Return the agent that starts, and its first message; None if it waits for one.

    Raises Invalid for a budget in dollars where a model has no price, for images that the model
    would not be sent, and for events to `replay` that are no recording.
    """
    await require_price(spec)
    await _require_vision(spec.model, images)
    if replay is not None:
        recording = parse_recording(replay)
        spec = await store_recording(log, recording, spec)
        if text is None and not images and (first := first_message(recording)):
            text = first.text
    if text is None and not images:
        return spec, None
    message, blobs = make_message(text or "", message_id, images)
    await store_images(log, blobs)
    return spec, message


async def prepare_message(
    log: EventLog,
    exists: Callable[[], Awaitable[bool]],
    text: str,
    message_id: str | None,
    images: Sequence[Image],
    reopen: bool,
) -> tuple[UserMessage, State]:
    """Return a message to a conversation whose images are stored, and the state of its log.

    Raises what `require_open` raises, and Invalid.
    """
    message, blobs = make_message(text, message_id, images, reopen)
    state = await require_open(log, exists, reopen)
    await _require_vision(state.spec.model if state.spec else None, images)
    await store_images(log, blobs)
    return message, state


async def require_price(spec: Agent) -> None:
    """Raise Invalid for a budget in dollars where a model has no price."""
    if spec.limits.max_budget is not None:
        from perdure.models.budget import PROGRAM_HINT, check_budget  # slow

        await asyncio.to_thread(check_budget, spec, PROGRAM_HINT)


async def _require_vision(model: ModelSpec | None, images: Sequence[Image]) -> None:
    """Raise Invalid if the model of a conversation would not be sent the images of a message."""
    if images and model is not None:
        from perdure.models.vision import check_vision  # slow

        await asyncio.to_thread(check_vision, model)
