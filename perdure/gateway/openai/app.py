"""The application that serves OpenAI's API."""

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from perdure.errors import ClientError
from perdure.gateway.errors import Refused
from perdure.gateway.gateway import Gateway
from perdure.gateway.openai.closing import Closing
from perdure.gateway.openai.errors import (
    answer_expected,
    answer_http_error,
    answer_invalid,
)
from perdure.gateway.openai.routes import conversations, models
from perdure.gateway.openai.routes.chat import chat_routes
from perdure.gateway.openai.routes.responses import response_routes
from perdure.gateway.openai.streams import ClientLeft
from perdure.storage.errors import StoreError

PATH = "/openai/v1"

HEADERS = (
    *("X-Conversation-Id", "X-Perdure-Task", "X-Perdure-Tool-Items"),
    *(
        f"X-Stainless-{name}"
        for name in (
            *("Arch", "Lang", "OS", "Package-Version", "Retry-Count", "Runtime"),
            *("Runtime-Version", "Timeout", "Helper-Method", "Poll-Helper"),
        )
    ),
)
"""The headers of requests that a page of an allowed site may send: those of OpenAI's own client."""


def create_openai_app(gateway: Gateway, closing: Closing) -> Starlette:
    """Build the application that serves OpenAI's API of a gateway below `PATH`."""
    app = Starlette(
        routes=[
            *models.ROUTES,
            *chat_routes(closing),
            *response_routes(closing),
            *conversations.ROUTES,
        ],
        exception_handlers={
            Refused: answer_expected,
            ClientError: answer_expected,
            StoreError: answer_expected,
            ValidationError: answer_invalid,
            HTTPException: answer_http_error,
            ClientLeft: _answer_nobody,
        },
    )
    app.router.redirect_slashes = False
    app.state.gateway = gateway
    return app


async def _answer_nobody(_: Request, __: Exception) -> Response:
    return Response(status_code=499)
