"""Errors in OpenAI's shape: `{"error": {"message", "type", "param", "code"}}`."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from perdure.gateway.errors import Refused, describe_failure

TYPES: dict[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    404: "invalid_request_error",
    409: "conflict_error",
    429: "rate_limit_error",
}
"""The types of errors by their status; of others they are `invalid_request_error` or
`server_error`."""

CODES: dict[str, str] = {
    "unauthorized": "invalid_api_key",
    "conflict": "conversation_locked",
    "too_many_requests": "rate_limit_exceeded",
    "too_many_connections": "rate_limit_exceeded",
}
"""OpenAI's codes of errors that have others in the native API."""


class BadRequest(Refused):
    """A request that makes no sense; `param` is the field that is wrong."""

    def __init__(
        self, detail: str, param: str | None = None, code: str = "invalid_value", status: int = 400
    ) -> None:
        super().__init__(status, code, detail)
        self.param = param


def format_error(status: int, code: str, message: str, param: str | None = None) -> dict[str, Any]:
    kind = TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    error = {"message": message, "type": kind, "param": param, "code": CODES.get(code, code)}
    return {"error": error}


def error_response(
    status: int,
    code: str,
    message: str,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    body = json.dumps(format_error(status, code, message, param))
    return Response(body, status, headers, "application/json")


def describe_error(error: Exception) -> tuple[int, str, str, dict[str, str]]:
    """Return status, code, message and headers of an expected error."""
    status, code, detail, hint, headers = describe_failure(error)
    message = f"{detail} {hint}".strip()
    return 400 if status == 422 else status, code, message, headers


async def answer_expected(_: Request, error: Exception) -> Response:
    """Answer an error of the gateway, of the client or of the store."""
    status, code, message, headers = describe_error(error)
    return error_response(status, code, message, getattr(error, "param", None), headers)


async def answer_invalid(_: Request, error: Exception) -> Response:
    """Answer a body that does not fit; nothing of its values is repeated."""
    assert isinstance(error, ValidationError)
    first = error.errors(include_input=False, include_url=False)[0]
    param = ".".join(str(step) for step in first["loc"] if isinstance(step, int | str)) or None
    return error_response(400, "invalid_value", f"{param or 'The body'}: {first['msg']}.", param)


async def answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if (cause := getattr(error, "cause", None)) is not None:
        return await answer_expected(request, cause)
    match error.status_code:
        case 404:
            return error_response(404, "not_found", "There is nothing at this address.")
        case 405:
            detail = "This address does not take such a request."
            return error_response(405, "method_not_allowed", detail, headers=error.headers)
        case 413:
            return error_response(413, "too_large", str(error.detail))
        case status:
            return error_response(status, "refused", str(error.detail), headers=error.headers)
