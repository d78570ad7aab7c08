"""A program that talks the Agent Client Protocol with an editor, until the end of its input."""

import asyncio
import logging
from collections.abc import AsyncIterator

from pydantic import ValidationError

from perdure.acp.methods import Methods
from perdure.acp.peer import Peer
from perdure.acp.rpc import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    Notification,
    Request,
    Response,
    RpcError,
    explain,
    parse_message,
)
from perdure.acp.sessions import FINISH_SECONDS
from perdure.acp.start import Host
from perdure.errors import PerdureError
from perdure.wording import shorten

logger = logging.getLogger("perdure.acp")


async def serve(host: Host, lines: AsyncIterator[bytes], peer: Peer) -> None:
    """Answer requests until the lines end, also the last of them.

    Turns that are at work go on without this process, and their prompts are not answered.
    """
    methods = Methods(host, peer)
    work: dict[asyncio.Task[None], str] = {}
    async for line in lines:
        if not line.strip():
            continue
        try:
            message = parse_message(line)
        except RpcError as error:
            await peer.refuse(error, error.request_id)
            continue
        match message:
            case Response():
                peer.take(message)
            case Notification():
                _notice(methods, message)
            case Request():
                task = asyncio.create_task(_answer(methods, peer, message))
                work[task] = message.method
                task.add_done_callback(work.pop)
                await asyncio.sleep(0)  # a message that follows finds what this one has begun
    if brief := [task for task, method in work.items() if method != "session/prompt"]:
        await asyncio.wait(brief, timeout=FINISH_SECONDS)
    await methods.sessions.close()
    for task in work:
        task.cancel()
    await asyncio.gather(*work, return_exceptions=True)


async def _answer(methods: Methods, peer: Peer, request: Request) -> None:
    method = methods.requests.get(request.method)
    try:
        if method is None:
            raise RpcError(METHOD_NOT_FOUND, f"There is no method {shorten(request.method)!r}.")
        answer = await method(request.params)
        await peer.answer(request.id, answer.result)
        if answer.then is not None:
            await answer.then()
    except (RpcError, ValidationError, PerdureError) as error:
        await peer.refuse(explain(error), request.id)
    except OSError as error:  # the editor is gone
        logger.info("%s is not answered: %s", request.method, error)
    except Exception as error:
        logger.exception("%s has failed", request.method)
        sentence = f"This is a bug of perdure: {type(error).__name__}: {error}"
        await peer.refuse(RpcError(INTERNAL_ERROR, sentence), request.id)


def _notice(methods: Methods, notification: Notification) -> None:
    if notification.method != "session/cancel":
        return
    try:
        methods.cancel(notification.params)
    except (ValidationError, PerdureError) as error:
        logger.warning("nothing is cancelled: %s", explain(error))
