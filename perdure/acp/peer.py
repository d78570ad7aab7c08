"""The program at the other end: what it is told, what it is asked, and what it answers."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

from perdure.acp.rpc import Id, Message, Response, RpcError, format_error, format_line

logger = logging.getLogger("perdure.acp")


class Peer:
    """The program at the other end of a connection, which takes one message at a time."""

    def __init__(self, write: Callable[[bytes], Awaitable[None]]) -> None:
        self._write = write
        self._turn = asyncio.Lock()
        self._numbers = count(1)
        self._asked: dict[Id, asyncio.Future[Any]] = {}

    async def answer(self, request_id: Id, result: Message) -> None:
        await self._send({"id": request_id, "result": result})

    async def refuse(self, error: RpcError, request_id: Id = None) -> None:
        await self._send({"id": request_id, "error": format_error(error)})

    async def notify(self, method: str, params: Message) -> None:
        await self._send({"method": method, "params": params})

    async def ask(self, method: str, params: Message) -> Any:
        """Ask for something, and return the result. Raises RpcError for an error."""
        number = f"perdure-{next(self._numbers)}"
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            await self._send({"id": number, "method": method, "params": params})
            return await answer
        except asyncio.CancelledError:
            await self.notify("$/cancel_request", {"requestId": number})
            raise
        finally:
            del self._asked[number]

    def take(self, response: Response) -> None:
        """Take an answer to a request; one to none of ours is passed over."""
        answer = self._asked.get(response.id)
        if answer is None or answer.done():
            logger.info("there is an answer to no request of ours: %s", response.id)
        elif isinstance(response.error, dict):
            code, message = response.error.get("code"), response.error.get("message")
            answer.set_exception(RpcError(code if isinstance(code, int) else 0, str(message)))
        else:
            answer.set_result(response.result)

    async def _send(self, message: Message) -> None:
        async with self._turn:
            await self._write(format_line(message))
