"""A remote codec, which decrypts payloads for the Temporal UI and the `temporal` command.

Source: https://docs.temporal.io/codec-server, which has the paths, the JSON and the headers.
"""

from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager
from functools import partial

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


def serve_codec(
    codec: Encryption, host: str = "127.0.0.1", port: int = 0, origins: Collection[str] = ()
) -> AbstractAsyncContextManager[str]:
    """Serve /encode and /decode inside the context, and yield the address; port 0 is a free one.

    Whoever reaches them can read everything, so browsers may call them from pages of `origins`
    alone; that also keeps out DNS rebinding. Raises OSError if the port is taken.
    """
    cors = Middleware(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=["POST"],
        allow_headers=["Authorization", "Content-Type", "X-Namespace"],
        allow_private_network=True,
    )
    paths = {"/encode": codec.encode_wrapper, "/decode": codec.decode_wrapper}
    routes = [
        Route(path, partial(_convert, convert, origins), methods=["POST"])
        for path, convert in paths.items()
    ]
    return serve_app(Starlette(routes=routes, middleware=[cors]), host, port)


async def _convert(
    convert: Callable[[Payloads], Awaitable[None]], origins: Collection[str], request: Request
) -> Response:
    """Encrypt or decrypt the payloads of a request; unencrypted ones are decrypted as they are."""
    origin = request.headers.get("origin")
    if origin is not None and origin not in origins:
        return PlainTextResponse(f"A page of {origin} may not ask: name it as --origin.", 403)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_REQUEST_BYTES:
            message = f"The request is larger than {MAX_REQUEST_BYTES:,} bytes."
            return PlainTextResponse(message, 413)
    try:
        payloads = Parse(bytes(body), Payloads())
        await convert(payloads)
    except Unreadable as error:
        return PlainTextResponse(str(error), 400)
    except (ParseError, ValueError):
        return PlainTextResponse('The body must be JSON: {"payloads": [...]}.', 400)
    return Response(MessageToJson(payloads, indent=None), media_type="application/json")
