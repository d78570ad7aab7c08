"""JSON as bytes: plain, whatever a model wrote, and a long list piece by piece."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

INDENT = 2

LINE_BREAKS = {char.encode(): json.dumps(char).encode()[1:-1] for char in "\u2028\u2029\u0085"}
"""Characters that JSON allows in a string, and many readers take for the end of a line."""


def compact_json(value: Any) -> bytes:
    """Encode the value on one line."""
    return escape_line_breaks(_encode(value, None))


def escape_line_breaks(body: bytes) -> bytes:
    """Replace every kind of line break in JSON by an equal form."""
    body = body.replace(b"\n", b" ")
    for line_break, escaped in LINE_BREAKS.items():
        body = body.replace(line_break, escaped)
    return body


def json_document(
    head: Mapping[str, Any],
    name: str,
    items: Iterable[Any],
    tail: Callable[[], Mapping[str, Any]] = dict,
) -> Iterator[bytes]:
    """Encode an object: the fields of `head`, the list `items` as `name`, the fields of `tail`.

    Yields the bytes of `json.dumps(..., ensure_ascii=False, indent=2)` item by item; `tail` is
    called after all items are written.
    """
    yield b"{"
    for key, value in head.items():
        yield _encode_field(key, value) + b","
    yield b"\n  " + _encode(name, None) + b": ["
    separator, end = b"\n    ", b"]"
    for item in items:
        yield separator + _encode_indented(item, 2)
        separator, end = b",\n    ", b"\n  ]"
    yield end
    for key, value in tail().items():
        yield b"," + _encode_field(key, value)
    yield b"\n}\n"


def _encode_field(key: str, value: Any) -> bytes:
    return b"\n  " + _encode(key, None) + b": " + _encode_indented(value, 1)


def _encode_indented(value: Any, depth: int) -> bytes:
    # Line breaks within strings are escaped: the others are between the fields.
    return _encode(value, INDENT).replace(b"\n", b"\n" + b" " * (INDENT * depth))


def _encode(value: Any, indent: int | None) -> bytes:
    """Encode JSON; half a surrogate pair, which UTF-8 does not have, becomes a `?`."""
    try:
        text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    except ValueError:
        text = json.dumps(_without_infinities(value), ensure_ascii=False, indent=indent)
    return text.encode(errors="replace")


def _without_infinities(value: Any) -> Any:
    """Replace numbers that JSON does not have by None."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: _without_infinities(item) for key, item in value.items()}
        case list() | tuple():
            return [_without_infinities(item) for item in value]
        case _:
            return value
