"""The messages of JSON-RPC 2.0, one a line, and its errors."""

import json
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic import ValidationError

from perdure.errors import ClientError, Invalid, NotFound
from perdure.events.validation_errors import describe_errors

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NO_SUCH_SESSION = -32002

Id: TypeAlias = int | float | str | None
Message: TypeAlias = dict[str, Any]


class RpcError(Exception):
    """A request that fails: with a code of JSON-RPC, a sentence, and what programs read."""

    def __init__(self, code: int, message: str, data: Any = None, request_id: Id = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data
        self.request_id = request_id
        """The id of a request that is none; None for other errors."""


@dataclass(frozen=True)
class Request:
    """A request, which one answer belongs to."""

    id: Id
    method: str
    params: Message


@dataclass(frozen=True)
class Notification:
    """A message that nobody answers."""

    method: str
    params: Message


@dataclass(frozen=True)
class Response:
    """The other side's answer to a request of ours: a result, or an error."""

    id: Id
    result: Any
    error: Any


def parse_message(line: bytes) -> Request | Notification | Response:
    """Parse a line. Raises RpcError."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, f"The line is not JSON: {error}.") from error
    if not isinstance(fields, dict) or fields.get("jsonrpc") != "2.0":
        sentence = 'A message is one object a line, with "jsonrpc": "2.0".'
        raise RpcError(INVALID_REQUEST, sentence)
    name, method, params = fields.get("id"), fields.get("method"), fields.get("params")
    if isinstance(name, bool) or not isinstance(name, int | float | str | None):
        raise RpcError(INVALID_REQUEST, "An id is a number or a text.")
    if method is None and ("result" in fields or "error" in fields):
        return Response(name, fields.get("result"), fields.get("error"))
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "A message has a method.", request_id=name)
    if not isinstance(params, dict | None):
        raise RpcError(INVALID_PARAMS, "The params are an object.", request_id=name)
    if "id" not in fields:
        return Notification(method, params or {})
    return Request(name, method, params or {})


def format_line(message: Message) -> bytes:
    """Write a message as a line; half a surrogate, which no UTF-8 has, becomes a question mark."""
    text = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="replace") + b"\n"


def format_error(error: RpcError) -> Message:
    """Return the error of an answer, without what it does not say."""
    fields: Message = {"code": error.code, "message": str(error)}
    return fields if error.data is None else {**fields, "data": error.data}


def explain(error: Exception) -> RpcError:
    """Return the answer to a request that an expected error has stopped."""
    if isinstance(error, RpcError):
        return error
    if isinstance(error, ValidationError):
        return RpcError(INVALID_PARAMS, f"The params are wrong: {describe_errors(error)}.")
    codes = {NotFound: NO_SUCH_SESSION, Invalid: INVALID_PARAMS}
    code = next((code for kind, code in codes.items() if isinstance(error, kind)), INTERNAL_ERROR)
    hint = error.hint if isinstance(error, ClientError) else ""
    return RpcError(code, f"{error} {hint}".strip())
