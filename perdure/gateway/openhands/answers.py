"""The answers of OpenHands' routes, and their errors: each is an object with `detail`."""

import json
import logging
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from perdure.errors import ClientError
from perdure.gateway.errors import (
    RETRY_AFTER,
    STATUS_OF,
    STORE_DETAIL,
    BodyRefused,
    Refused,
)
from perdure.storage.errors import StoreError

logger = logging.getLogger("perdure.gateway")

Body = TypeVar("Body", bound=BaseModel)

SUCCESS = {"success": True}


class BadRequest(Exception):
    """A request that does not fit; `problems` are in the shape of FastAPI's."""

    def __init__(self, problems: list[dict[str, Any]]) -> None:
        super().__init__("the request does not fit")
        self.problems = problems


async def read_body(request: Request, kind: type[Body]) -> Body:
    """Read the body of a request; an absent one has all defaults. Raises BadRequest."""
    raw = await request.body()
    try:
        fields = json.loads(raw) if raw else {}
    except (ValueError, RecursionError):
        raise BadRequest([_problem(("body",), "it is no JSON", "json_invalid")]) from None
    return parse(kind, fields, "body")


def parse(kind: type[Body], fields: Any, place: str) -> Body:
    """Parse fields. Raises BadRequest, which repeats no value."""
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        problems = [
            _problem((place, *each["loc"]), each["msg"], each["type"]) for each in error.errors()
        ]
        raise BadRequest(problems) from None


def _problem(place: tuple[str | int, ...], message: str, kind: str) -> dict[str, Any]:
    return {"type": kind, "loc": list(place), "msg": message}


def answer(fields: Mapping[str, Any] = SUCCESS, status: int = 200) -> Response:
    return JSONResponse(dict(fields), status)


def refuse(status: int, detail: str) -> Refused:
    return Refused(status, "refused", detail)


def add_error_handlers(app: Starlette) -> None:
    app.add_exception_handler(BadRequest, _answer_bad_request)
    app.add_exception_handler(Refused, _answer_refusal)
    app.add_exception_handler(ClientError, _answer_expected)
    app.add_exception_handler(StoreError, _answer_expected)
    app.add_exception_handler(HTTPException, _answer_http_error)


async def _answer_bad_request(_: Request, error: Exception) -> Response:
    assert isinstance(error, BadRequest)
    return JSONResponse({"detail": error.problems}, 422)


async def _answer_refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    detail = "Unauthorized" if error.status == 401 else " ".join((error.detail, error.hint)).strip()
    return JSONResponse({"detail": detail}, error.status, error.headers)


async def _answer_expected(request: Request, error: Exception) -> Response:
    status, code = next(found for kind, found in STATUS_OF.items() if isinstance(error, kind))
    headers = {"Retry-After": str(RETRY_AFTER)} if status == 503 else None
    detail = " ".join((str(error), getattr(error, "hint", ""))).strip()
    if code == "store_unavailable":
        logger.warning("%s %s: %s", request.method, request.url.path, error)
        detail = STORE_DETAIL
    return JSONResponse({"detail": detail}, status, headers)


async def _answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error, BodyRefused):
        answer_cause = _answer_refusal if isinstance(error.cause, Refused) else _answer_expected
        return await answer_cause(request, error.cause)
    return JSONResponse({"detail": str(error.detail)}, error.status_code, error.headers)
