"""A remote codec, which decrypts payloads for the Temporal UI and the `temporal` command.

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

from perdure.temporal.codec import Encryption, Unreadable
from perdure.testing.server import serve_app

MAX_REQUEST_BYTES = 32 * 1024 * 1024
"""The size limit of a request, which holds a page of a history."""


class CodecServer:
    """The routes /encode and /decode.

    Whoever reaches them can read everything, so browsers may call them from pages of `origins`
    alone; that also keeps out DNS rebinding.
    """

    def __init__(self, codec: Encryption, origins: Collection[str] = ()) -> None:
        self.codec = codec
        self.origins = origins

    def app(self) -> Starlette:
        """Build the ASGI application."""
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
        """Encrypt the payloads that a person enters in the UI."""
        payloads = await self._read_payloads(request)
        if not isinstance(payloads, Payloads):
            return payloads
        await self.codec.encode_wrapper(payloads)
        return _respond(payloads)

    async def decode(self, request: Request) -> Response:
        """Decrypt the payloads; unencrypted ones are returned as they are."""
        payloads = await self._read_payloads(request)
        if not isinstance(payloads, Payloads):
            return payloads
        try:
            await self.codec.decode_wrapper(payloads)
        except Unreadable as error:
            return PlainTextResponse(str(error), 400)
        return _respond(payloads)

    async def _read_payloads(self, request: Request) -> Payloads | Response:
        """Read the payloads of a request, or build the response that refuses it."""
        origin = request.headers.get("origin")
        if origin is not None and origin not in self.origins:
            return PlainTextResponse(f"A page of {origin} may not ask: name it as --origin.", 403)
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_REQUEST_BYTES:
                return PlainTextResponse(
                    f"The request is larger than {MAX_REQUEST_BYTES:,} bytes.", 413
                )
        try:
            return Parse(bytes(body), Payloads())
        except (ParseError, ValueError):
            return PlainTextResponse('The body must be JSON: {"payloads": [...]}.', 400)


def _respond(payloads: Payloads) -> Response:
    return Response(MessageToJson(payloads, indent=None), media_type="application/json")


def serve_codec(
    codec: Encryption, host: str = "127.0.0.1", port: int = 0, origins: Collection[str] = ()
) -> AbstractAsyncContextManager[str]:
    """Serve the codec inside the context, and yield its address. Port 0 selects a free port.

    Raises OSError if the port is taken.
    """
    return serve_app(CodecServer(codec, origins).app(), host, port)
