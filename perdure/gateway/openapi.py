"""The OpenAPI description of the native API, exact enough for tools that try everything."""

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from perdure.api.problem import PROBLEM_MEDIA_TYPE, Problem

DESCRIPTION = """\
Agent conversations that cannot be lost. Every error is a problem of RFC 9457. What is another \
user's is answered as what does not exist."""

PROBLEMS: dict[int, str] = {
    400: "The head of the request cannot be read.",
    401: "The request has no valid key.",
    403: "The key, or a grant, does not allow it.",
    404: "There is no such thing of this user.",
    408: "The body did not come in time.",
    409: "The state of the conversation, batch or discussion forbids it.",
    413: "The body is too large.",
    421: "The gateway is not called so.",
    422: "The request makes no sense.",
    429: "These are too many requests.",
    503: "Temporal, the store or the issuer of tokens does not answer.",
    504: "The answer did not come in time; the work goes on.",
}
"""The errors of every route, with what they mean."""

HEADERS: dict[int, dict[str, Any]] = {
    401: {"WWW-Authenticate": {"schema": {"type": "string"}}},
    429: {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}},
    503: {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}},
}

SECURITY_SCHEMES: dict[str, Any] = {
    "key": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key, or a token of the issuer.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "__Host-perdure",
        "description": "The session of a browser, which `POST /v1/login` begins.",
    },
}

EVENT_STREAM = "text/event-stream"

SENT_EVENT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "event": {"type": "string", "description": "The kind of the frame."},
        "data": {"type": "string", "contentMediaType": "application/json"},
        "id": {"type": "string", "description": "The slot of a `durable` frame."},
        "retry": {"type": "integer", "description": "Milliseconds."},
    },
}
"""One event of a stream, as OpenAPI 3.2 describes the items of a response."""

OPEN_PATHS = ("/health", "/ready", "/v1/login", "/v1/posts/{address_id}/{secret}")
"""The paths that need no key."""


def build_openapi(app: FastAPI) -> dict[str, Any]:
    """Build the description of an application once."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title="perdure",
            version=version("perdure"),
            description=DESCRIPTION,
            routes=app.routes,
        )
        _complete(schema)
        app.openapi_schema = schema
    return app.openapi_schema


def _complete(schema: dict[str, Any]) -> None:
    components = schema["components"]
    schemas = components["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Problem"] = Problem.model_json_schema()
    components["securitySchemes"] = SECURITY_SCHEMES
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            if path not in OPEN_PATHS:
                operation["security"] = [{name: []} for name in SECURITY_SCHEMES]
            for response in operation["responses"].values():
                if EVENT_STREAM in response.get("content", ()):
                    response["content"][EVENT_STREAM] = {"itemSchema": SENT_EVENT}
            for status, meaning in PROBLEMS.items():
                operation["responses"][str(status)] = _describe_problem(status, meaning)
    for name in _list_requests(schema):
        _forbid_unknown_fields(schemas[name])


def _describe_problem(status: int, meaning: str) -> dict[str, Any]:
    content = {PROBLEM_MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    headers = {"headers": HEADERS[status]} if status in HEADERS else {}
    return {"description": meaning, "content": content, **headers}


def _list_requests(schema: dict[str, Any]) -> set[str]:
    """List the schemas that the bodies of requests are made of."""
    found: set[str] = set()
    bodies = [
        operation["requestBody"]
        for operations in schema["paths"].values()
        for operation in operations.values()
        if "requestBody" in operation
    ]
    waiting = [name for body in bodies for name in _list_references(body)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _list_references(schema["components"]["schemas"][name])
    return found


def _list_references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        reference = part.get("$ref")
        if isinstance(reference, str):
            yield reference.rpartition("/")[2]
        for value in part.values():
            yield from _list_references(value)
    elif isinstance(part, list):
        for value in part:
            yield from _list_references(value)


def _forbid_unknown_fields(schema: dict[str, Any]) -> None:
    """Say that an object has no other fields: a request with a field that nobody knows is refused,
    although events of newer versions may have some."""
    if schema.get("type") == "object" and "properties" in schema:
        schema.setdefault("additionalProperties", False)
