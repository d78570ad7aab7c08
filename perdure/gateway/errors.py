"""Errors as answers: each is a problem of RFC 9457, whatever raised it."""

import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, TypeAlias

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import Match

from perdure.api.problem import PROBLEM_MEDIA_TYPE, Problem
from perdure.errors import (
    ClientError,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    TimedOut,
    Unreachable,
)
from perdure.storage.errors import Altered, BadSlot, StoreError, Unrestorable

logger = logging.getLogger("perdure.gateway")

RETRY_AFTER = 2
"""Seconds after which a client may ask again where Temporal or the store did not answer."""

# The first matching class decides, so subclasses stand before their base class.
STATUS_OF: dict[type[Exception], tuple[int, str]] = {
    Invalid: (422, "invalid"),
    NotFound: (404, "not_found"),
    Forbidden: (403, "forbidden"),
    Conflict: (409, "conflict"),
    TimedOut: (504, "timed_out"),
    Unreachable: (503, "unreachable"),
    ClientError: (409, "failed"),
    Altered: (409, "damaged"),
    BadSlot: (409, "damaged"),
    Unrestorable: (409, "damaged"),
    StoreError: (503, "store_unavailable"),
}

STORE_DETAIL = "The store does not answer as it should: ask again."
"""Tells nothing of the store's address, which an error of the store names."""


class Refused(Exception):
    """A request that the gateway refuses by itself, with the status of its answer."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        hint: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.hint = hint
        self.headers = dict(headers or {})


EXPECTED = (Refused, ClientError, StoreError)
"""The errors that are answered by themselves."""


class BodyRefused(HTTPException):
    """An expected error while a body is read: FastAPI lets no other kind of exception through."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(400)
        self.cause = cause


def add_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(Refused, _answer_refusal)
    app.add_exception_handler(ClientError, _answer_expected)
    app.add_exception_handler(StoreError, _answer_expected)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(HTTPException, _answer_http_error)


def problem_response(
    status: int,
    code: str,
    detail: str,
    hint: str = "",
    headers: Mapping[str, str] | None = None,
    errors: tuple[str, ...] = (),
) -> Response:
    """Build the answer of an error."""
    title = HTTPStatus(status).phrase
    problem = Problem(
        title=title, status=status, code=code, detail=detail, hint=hint, errors=errors
    )
    return Response(problem.model_dump_json(), status, headers, PROBLEM_MEDIA_TYPE)


Answer: TypeAlias = Callable[[HTTPConnection, int, str, str], Response]
"""Builds the answer of an error outside of all routes: for a request, with status, code, detail."""


def answer_problem(_: HTTPConnection, status: int, code: str, detail: str) -> Response:
    return problem_response(status, code, detail)


async def _answer_refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return problem_response(error.status, error.code, error.detail, error.hint, error.headers)


async def _answer_expected(request: Request, error: Exception) -> Response:
    """Answer an error of the client or of the store."""
    status, code, detail, hint, headers = describe_failure(error)
    if code == "store_unavailable":
        logger.warning("%s %s: %s", request.method, request.url.path, error)
    return problem_response(status, code, detail, hint, headers)


def describe_failure(error: Exception) -> tuple[int, str, str, str, dict[str, str]]:
    """Return status, code, detail, hint and headers of an expected error."""
    if isinstance(error, Refused):
        return error.status, error.code, error.detail, error.hint, error.headers
    status, code = next(found for kind, found in STATUS_OF.items() if isinstance(error, kind))
    headers = {"Retry-After": str(RETRY_AFTER)} if status == 503 else {}
    detail = STORE_DETAIL if code == "store_unavailable" else str(error)
    return status, code, detail, getattr(error, "hint", ""), headers


async def _answer_invalid(_: Request, error: Exception) -> Response:
    """Answer a request that does not fit the contract; nothing of its values is repeated."""
    assert isinstance(error, RequestValidationError)
    lines = tuple(map(_describe, error.errors()))
    detail = f"The request is not right: {lines[0]}" if lines else "The request is not right."
    return problem_response(422, "invalid", detail, errors=lines)


def _describe(error: Mapping[str, Any]) -> str:
    path = ".".join(map(str, error["loc"]))
    return f"{path}: {error['msg']}."


async def _answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error, BodyRefused):
        answer = _answer_refusal if isinstance(error.cause, Refused) else _answer_expected
        return await answer(request, error.cause)
    headers = dict(error.headers or {})
    match error.status_code:
        case 404:
            return problem_response(404, "not_found", "There is nothing at this address.")
        case 405:
            allowed = sorted(_list_methods(request))
            detail = f"This address takes {', '.join(allowed)}."
            headers["Allow"] = ", ".join(allowed)
            return problem_response(405, "method_not_allowed", detail, headers=headers)
        case 400:  # a body that is no text, or no JSON
            return problem_response(422, "invalid", "The body cannot be read: send JSON in UTF-8.")
        case 408:
            return problem_response(408, "too_slow", str(error.detail))
        case 413:
            return problem_response(413, "too_large", str(error.detail))
        case status:
            return problem_response(status, "refused", str(error.detail), headers=headers)


def _list_methods(request: Request) -> set[str]:
    """List the methods of all routes of an address: each route has its own."""
    scope = dict(request.scope)
    found = [
        inner
        for route in request.app.routes
        for inner in getattr(getattr(route, "original_router", None), "routes", (route,))
        if inner.matches(scope)[0] is not Match.NONE
    ]
    return {method for route in found for method in getattr(route, "methods", None) or ()}
