"""Turns as answers: whole once they have ended, or as server-sent events."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import ExitStack, aclosing, suppress
from functools import partial
from typing import Any, Protocol

from starlette.requests import Request

from perdure.gateway.errors import EXPECTED
from perdure.gateway.openai.call import Call
from perdure.gateway.openai.errors import describe_error, format_error
from perdure.gateway.turn_streams import KEEP_ALIVE, TurnStream, encode_data, keep_alive
from perdure.gateway.turns.parts import Part
from perdure.gateway.turns.turns import TurnKey

DONE = b"data: [DONE]\n\n"

Encode = Callable[[dict[str, Any]], bytes]


class Projection(Protocol):
    """A protocol's view of a turn."""

    def begin(self) -> list[dict[str, Any]]: ...
    def take(self, part: Part) -> list[dict[str, Any]]: ...


class ClientLeft(Exception):
    """The client has left before the answer; the turn goes on."""


def encode_event(event: dict[str, Any]) -> bytes:
    """Return a server-sent event that is called as its type."""
    return b"event: %b\n%b" % (event["type"].encode(), encode_data(event))


def stream_turn(
    call: Call,
    key: TurnKey,
    projection: Projection,
    encode: Encode,
    *,
    skip: Callable[[dict[str, Any]], bool] = lambda _: False,
    end: Callable[[], Iterable[bytes]] = tuple,
    headers: dict[str, str] | None = None,
) -> TurnStream:
    """Answer with the events of a turn, but those to `skip`, and with what follows its `end`.

    Raises Refused if the user has too many connections.
    """
    stack = ExitStack()
    stack.enter_context(call.gateway.connections.hold(call.user_id))
    events = _list_events(call, key, projection)
    is_valid = partial(call.gateway.identities.is_valid, call.caller.principal)

    async def encode_all() -> AsyncGenerator[bytes, None]:
        try:
            async with aclosing(keep_alive(events, is_valid)) as ticks:
                async for event in ticks:
                    if event is None:
                        yield KEEP_ALIVE
                    elif not skip(event):
                        yield encode(event)
        except EXPECTED as error:
            status, code, message, _ = describe_error(error)
            yield encode({"type": "error", **format_error(status, code, message)})
        for last in end():
            yield last

    return TurnStream(encode_all(), stack, headers or {})


async def await_turn(call: Call, key: TurnKey, projection: Projection) -> None:
    """Let a projection take the whole turn. Raises ClientLeft."""
    with call.gateway.connections.hold(call.user_id):
        taking = asyncio.create_task(_take_all(call, key, projection))
        leaving = asyncio.create_task(_await_disconnect(call.request))
        try:
            await asyncio.wait({taking, leaving}, return_when="FIRST_COMPLETED")
            if not taking.done():
                raise ClientLeft
            await taking
        finally:
            for task in (taking, leaving):
                task.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await task


async def _take_all(call: Call, key: TurnKey, projection: Projection) -> None:
    async with aclosing(_list_events(call, key, projection)) as events:
        async for _ in events:
            pass


async def _list_events(
    call: Call, key: TurnKey, projection: Projection
) -> AsyncGenerator[dict[str, Any], None]:
    for event in projection.begin():
        yield event
    async with aclosing(call.gateway.turns.find(key).listen()) as parts:
        async for part in parts:
            for event in projection.take(part):
                yield event


async def _await_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
