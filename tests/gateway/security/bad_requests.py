"""Requests that make no sense, to every route of the OpenAPI description: made from it alone.

A new route, field or parameter is tried without a line here; a route's body that makes sense, of
which one part at a time is spoilt, is that of the table in `routes`.
"""

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from tests.gateway.security.routes import REQUESTS, Ids
from tests.record_openapi import OPENAPI

DESCRIPTION: dict[str, Any] = json.loads(OPENAPI.read_text())
SCHEMAS: dict[str, Any] = DESCRIPTION["components"]["schemas"]

Place = tuple[str | int, ...]
"""The way to a value in a body: names of fields, and 0 for an item of a list."""

WRONG_TYPES: dict[str, Any] = {"array": [[1]], "object": {"no_such_field": 1}, "number": 1.5}
"""Values of which at least one is of a type that a field does not have."""

SURROGATE = "half of \ud800 a pair"

TOO_LONG = 4_000
"""The greatest length of a text that is made too long: the others would be large requests."""

BODIES: dict[str, bytes] = {
    "no JSON": b"nonsense",
    "an object that does not end": b'{"text": "',
    "bytes of no text": b"\xff\xfe\x00\x01",
    "NUL": b"\0",
    "a list": b"[]",
    "null": b"null",
    "a text": b'"text"',
    "a number": b"1e999",
    "no number": b"NaN",
    "lists without end": b"[" * 50_000,
}

PATHS = ("%00", "%20", "%2e%2e", "%2e%2e%2fx", "%ed%a0%80", "%ff", "x%0d%0aX-Y:%20z", "x" * 5000)
"""Parts of a path that name nothing."""

TEXTS = ("%00", "%ed%a0%80", "%ff", "a%00b")
"""Values in an address that are no text, or one that nothing should have."""


@dataclass(frozen=True)
class BadRequest:
    """A request, and the statuses that its answer may have."""

    name: str
    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    statuses: tuple[int, ...] = (422,)
    may_succeed: bool = False
    """Whether it reads something by a value that may make sense after all."""


@dataclass(frozen=True)
class Route:
    """A route with what its description says of it."""

    method: str
    path: str
    operation: Mapping[str, Any] = field(hash=False)

    @property
    def key(self) -> tuple[str, str]:
        return self.method, self.path

    @property
    def body(self) -> dict[str, Any] | None:
        """The schema of the body; None where the route has none, or takes any body as a text."""
        if "requestBody" not in self.operation:
            return None
        content = self.operation["requestBody"]["content"]
        schema: dict[str, Any] = content["application/json"]["schema"]
        return schema or None

    def parameters(self, kind: str) -> Iterator[tuple[str, dict[str, Any], bool]]:
        """Yield the name and the schema of each parameter, and whether it is required."""
        for it in self.operation.get("parameters", ()):
            if it["in"] == kind:
                yield it["name"], it["schema"], it.get("required", False)


ROUTES = [
    Route(method.upper(), path, operation)
    for path, methods in DESCRIPTION["paths"].items()
    for method, operation in methods.items()
]


def bad_requests(route: Route, ids: Ids) -> Iterator[BadRequest]:
    """Yield all bad requests to a route; `ids` are those of things that exist."""
    yield from _bad_paths(route, ids)
    yield from _bad_queries(route, ids)
    yield from _bad_headers(route, ids)
    if route.body is not None:
        yield from _bad_bodies(route, ids)


def _bad_paths(route: Route, ids: Ids) -> Iterator[BadRequest]:
    for name, _, _ in route.parameters("path"):
        for value in PATHS:
            target = _target(route, ids._replace(**{name: value}))
            statuses = (400, 404, 405, 414, 422)
            yield BadRequest(f"{name} {value[:20]}", route.method, target, *_sense(route), statuses)


def _bad_queries(route: Route, ids: Ids) -> Iterator[BadRequest]:
    given = dict(REQUESTS[route.key].query)
    for name, schema, required in route.parameters("query"):
        for value in _wrong_texts(schema):
            target = _target(route, ids, {**given, name: value})
            yield BadRequest(f"{name}={value[:20]}", route.method, target, *_sense(route))
        if required:
            rest = {key: text for key, text in given.items() if key != name}
            yield BadRequest(f"no {name}", route.method, _target(route, ids, rest), *_sense(route))
        if route.method == "GET":
            for value in TEXTS:
                target = _target(route, ids, {**given, name: value})
                statuses = (400, 404, 422)
                yield BadRequest(
                    f"{name}={value}", "GET", target, statuses=statuses, may_succeed=True
                )


def _bad_headers(route: Route, ids: Ids) -> Iterator[BadRequest]:
    headers, body = _sense(route)
    for name, schema, _ in route.parameters("header"):
        for value in _wrong_texts(schema):
            if value:  # an empty header is as none for some servers
                spoilt = {**headers, name: value}
                target = _target(route, ids)
                yield BadRequest(f"{name}: {value[:20]}", route.method, target, spoilt, body)


def _bad_bodies(route: Route, ids: Ids) -> Iterator[BadRequest]:
    assert route.body is not None
    target, (headers, sound) = _target(route, ids), _sense(route)
    for name, body in BODIES.items():
        yield BadRequest(name, route.method, target, headers, body)
    if route.operation["requestBody"].get("required"):
        yield BadRequest("no body", route.method, target)
        yield BadRequest("an empty body", route.method, target, headers, b"")
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        yield BadRequest(kind, route.method, target, {"Content-Type": kind}, sound, (415, 422))
    spoilt = {**_sound_body(route), "no_such_field": 1}
    yield BadRequest("an unknown field", route.method, target, headers, _encode(spoilt))
    for name in _resolve(route.body).get("required", ()):
        rest = {key: value for key, value in _sound_body(route).items() if key != name}
        yield BadRequest(f"no {name}", route.method, target, headers, _encode(rest))
    for place, schema in _list_fields(route.body):
        for value in _wrong_values(schema):
            name = f"{'.'.join(map(str, place))} = {json.dumps(value)[:30]}"
            body = _encode(_put(_sound_body(route), place, value))
            yield BadRequest(name, route.method, target, headers, body)


def _target(route: Route, ids: Ids, query: Mapping[str, str] | None = None) -> str:
    given = REQUESTS[route.key].query if query is None else query
    names = ids._asdict()
    texts = (f"{name}={value.format(**names)}" for name, value in given.items())
    return f"{route.path.format(**names)}?{'&'.join(texts)}".rstrip("?")


def _sense(route: Route) -> tuple[dict[str, str], bytes | None]:
    """Return the headers and the body of a request to a route that makes sense."""
    if route.body is None:
        return {}, None
    return {"Content-Type": "application/json"}, _encode(_sound_body(route))


def _sound_body(route: Route) -> dict[str, Any]:
    body: dict[str, Any] = deepcopy(REQUESTS[route.key].body)
    return body


def _encode(value: Any) -> bytes:
    return json.dumps(value).encode()


def _put(body: Any, place: Place, value: Any) -> Any:
    """Put a value into a body, with all that is missing on the way to it."""
    if not place:
        return value
    first, rest = place[0], place[1:]
    if isinstance(first, int):
        return [_put(None, rest, value)]
    whole = body if isinstance(body, dict) else {}
    return {**whole, first: _put(whole.get(first), rest, value)}


def _list_fields(
    schema: dict[str, Any], place: Place = (), seen: frozenset[str] = frozenset()
) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Yield each field that a schema names, however deep, and its own schema."""
    for option in _options(schema):
        name = option.get("$ref", "").rpartition("/")[2]
        if name in seen:
            continue
        whole, known = _resolve(option), seen | ({name} if name else set())
        for key, each in whole.get("properties", {}).items():
            yield (*place, key), each
            yield from _list_fields(each, (*place, key), known)
        if "items" in whole:
            yield (*place, 0), whole["items"]
            yield from _list_fields(whole["items"], (*place, 0), known)


def _options(schema: dict[str, Any]) -> list[dict[str, Any]]:
    options: list[dict[str, Any]] = schema.get("anyOf", schema.get("oneOf", [schema]))
    return options


def _resolve(schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return _resolve(SCHEMAS[schema["$ref"].rpartition("/")[2]])
    return schema


def _simple_options(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """List the schemas of which a value has to fit one, none of which is a choice itself."""
    found = [_resolve(option) for option in _options(_resolve(schema))]
    nested = [it for it in found if "anyOf" in it or "oneOf" in it]
    return [it for it in found if it not in nested] + [
        inner for it in nested for inner in _simple_options(it)
    ]


def _wrong_values(schema: dict[str, Any]) -> Iterator[Any]:
    """Yield JSON values that a field of this schema may not have."""
    options = _simple_options(schema)
    types = {it.get("type", _type_of_constant(it)) for it in options}
    if None in types:  # anything that is JSON
        yield SURROGATE
        return
    if "integer" in types:
        types.add("number")
    yield from (value for kind, value in WRONG_TYPES.items() if kind not in types)
    if "null" not in types:
        yield None
    if "string" in types:
        yield SURROGATE
    if any("additionalProperties" in it and "properties" not in it for it in options):
        yield {"x": SURROGATE}
        yield {SURROGATE: 1}
    if len(options) == 1 or (len(options) == 2 and "null" in types):
        [only] = [it for it in options if it.get("type") != "null"]
        yield from _beyond(only)


def _type_of_constant(schema: dict[str, Any]) -> str | None:
    return "string" if isinstance(schema.get("const"), str) else None


def _beyond(schema: dict[str, Any]) -> Iterator[Any]:
    """Yield values of the type of a schema that are beyond what it allows."""
    if "enum" in schema or "const" in schema:
        yield "no such word"
    if "pattern" in schema:
        yield "\0"
    if schema.get("minLength"):
        yield ""
    if schema.get("maxLength", TOO_LONG) < TOO_LONG:
        yield "x" * (schema["maxLength"] + 1)
    if schema.get("minItems"):
        yield []
    least = schema.get("minimum", schema.get("exclusiveMinimum"))
    most = schema.get("maximum", schema.get("exclusiveMaximum"))
    if least is not None:
        yield least - 1
    if most is not None:
        yield most * 2 + 1


def _wrong_texts(schema: dict[str, Any]) -> Iterator[str]:
    """Yield texts that a parameter of this schema may not have."""
    [only] = [it for it in _simple_options(schema) if it.get("type") != "null"]
    match only["type"]:
        case "integer" | "number":
            yield from ("x", "1e999", "NaN", "0x1", "9" * 400, "")
            yield from (str(value) for value in _beyond(only))
        case "boolean":
            yield from ("maybe", "2")
        case "array":
            yield from _wrong_texts(only["items"])
        case _:
            yield from (quote(value) for value in _beyond(only))
