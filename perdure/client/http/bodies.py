"""The bodies of requests to a gateway, of what a program gives."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from perdure.agent.fields import plain_fields
from perdure.agent.named import require_extended
from perdure.agent.spec import Agent
from perdure.api import conversations as api
from perdure.client.http.problems import build_body
from perdure.client.http.remote_agent import RemoteAgent
from perdure.client.ids import new_message_id
from perdure.client.images import Image, check_image
from perdure.client.recording import RecordedEvents
from perdure.events.images import to_data_url


async def build_start(
    conversation_id: str,
    text: str | None,
    spec: Agent | Mapping[str, Any] | str,
    message_id: str | None,
    images: Sequence[Image],
    title: str | None,
    replay: RecordedEvents | None,
) -> api.Start:
    """Build the start of a conversation; its message has an id. Raises Invalid."""
    return build_body(
        api.Start,
        text=text,
        agent=encode_agent(spec),
        conversation_id=conversation_id,
        message_id=message_id or new_message_id(),
        images=await _encode_images(images),
        title=title,
        replay=None if replay is None else tuple(dict(event) for event in replay),
    )


async def build_message(
    text: str,
    message_id: str | None,
    images: Sequence[Image],
    wait: bool,
    reopen: bool,
    run: bool,
) -> api.SendMessage:
    """Build a message, which has an id. Raises Invalid."""
    return build_body(
        api.SendMessage,
        text=text,
        message_id=message_id or new_message_id(),
        images=await _encode_images(images),
        wait=wait,
        reopen=reopen,
        run=run,
    )


def build_note(
    title: str | None,
    tags: Sequence[str] | None,
    state: Mapping[str, Any] | None,
    versions: Mapping[str, str] | None,
) -> api.Note:
    return build_body(
        api.Note,
        title=title,
        tags=None if tags is None else tuple(tags),
        state=None if state is None else dict(state),
        versions=None if versions is None else dict(versions),
    )


def encode_agent(spec: Agent | Mapping[str, Any] | str) -> Agent | dict[str, Any] | str:
    """Return what a request has in the place of an agent. Raises Invalid."""
    if isinstance(spec, Mapping):
        require_extended(spec)
        return plain_fields(spec)
    return spec.request if isinstance(spec, RemoteAgent) else spec


async def _encode_images(images: Sequence[Image]) -> tuple[str, ...]:
    """Return what a request has in the place of images. Raises Invalid."""
    return tuple([await asyncio.to_thread(_encode_image, image) for image in images])


def _encode_image(image: Image) -> str:
    checked = check_image(image)
    return checked if isinstance(checked, str) else to_data_url(checked)
