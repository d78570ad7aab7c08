"""What the Temporal UI and the `temporal` command ask to see payloads decrypted: a remote codec.

Source: https://docs.temporal.io/codec-server, which has the paths, the JSON and the headers.
"""

from collections.abc import Collection
from contextlib import AbstractAsyncContextManager

from google.protobuf.json_format import MessageToJson, Parse, ParseError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from temporalio.api.common.v1 import Payloads

from client.codec import Encryption, Unreadable
from models.serve import listening

LIMIT = 32 * 1024 * 1024
"""Bytes of a request: a page of a history."""


class CodecServer:
    """The routes: /encode and /decode.

    Whoever can ask reads everything, so a browser may ask for pages of `origins` alone; that also
    keeps out a page whose name was pointed at this machine.
    """

    def __init__(self, codec: Encryption, origins: Collection[str] = ()) -> None:
        self.codec = codec
        self.origins = origins

    def app(self) -> Starlette:
        """The ASGI application."""
        cors = Middleware(
            CORSMiddleware,
            allow_origins=self.origins,
            allow_methods=["POST"],
            allow_headers=["Authorization", "Content-Type", "X-Namespace"],
            allow_private_network=True,
        )
        routes = [
            Route("/encode", self.encode, methods=["POST"]),
            Route("/decode", self.decode, methods=["POST"]),
        ]
        return Starlette(routes=routes, middleware=[cors])

    async def encode(self, request: Request) -> Response:
        """Encrypt what somebody types into the UI."""
        payloads = await self._asked(request)
        if not isinstance(payloads, Payloads):
            return payloads
        await self.codec.encode_wrapper(payloads)
        return _answer(payloads)

    async def decode(self, request: Request) -> Response:
        """Decrypt; what is not encrypted comes back as it is."""
        payloads = await self._asked(request)
        if not isinstance(payloads, Payloads):
            return payloads
        try:
            await self.codec.decode_wrapper(payloads)
        except Unreadable as error:
            return PlainTextResponse(str(error), 400)
        return _answer(payloads)

    async def _asked(self, request: Request) -> Payloads | Response:
        """The payloads in the request, or why there are none."""
        origin = request.headers.get("origin")
        if origin is not None and origin not in self.origins:
            return PlainTextResponse(f"A page of {origin} may not ask: name it as --origin.", 403)
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > LIMIT:
                return PlainTextResponse(f"The request is larger than {LIMIT:,} bytes.", 413)
        try:
            return Parse(bytes(body), Payloads())
        except (ParseError, ValueError):
            return PlainTextResponse('The body must be JSON: {"payloads": [...]}.', 400)


def _answer(payloads: Payloads) -> Response:
    return Response(MessageToJson(payloads, indent=None), media_type="application/json")


def serving(
    codec: Encryption, host: str = "127.0.0.1", port: int = 0, origins: Collection[str] = ()
) -> AbstractAsyncContextManager[str]:
    """Serve while inside; gives the address. Port 0 is a free one.

    Raises OSError where the port is taken.
    """
    return listening(CodecServer(codec, origins).app(), host, port)
