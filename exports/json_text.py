"""JSON as bytes: plain, whatever a model wrote, and a long list piece by piece."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

INDENT = 2

BREAKS = {one.encode(): json.dumps(one).encode()[1:-1] for one in "\u2028\u2029\u0085"}
"""What JSON allows within a string, and many a reader of lines takes for the end of one."""


def compact(value: Any) -> bytes:
    """The value on one line."""
    return one_line(_encoded(value, None))


def one_line(body: bytes) -> bytes:
    """JSON that holds no line break of any kind, and says the same."""
    body = body.replace(b"\n", b" ")
    for found, escaped in BREAKS.items():
        body = body.replace(found, escaped)
    return body


def document(
    head: Mapping[str, Any],
    name: str,
    items: Iterable[Any],
    tail: Callable[[], Mapping[str, Any]] = dict,
) -> Iterator[bytes]:
    """An object with the fields of `head`, the list `items` as `name`, and the fields of `tail`.

    Item by item the bytes of `json.dumps(..., ensure_ascii=False, indent=2)`; `tail` is asked once
    all items are written.
    """
    yield b"{"
    for key, value in head.items():
        yield _field(key, value) + b","
    yield b"\n  " + _encoded(name, None) + b": ["
    separator, end = b"\n    ", b"]"
    for item in items:
        yield separator + _indented(item, 2)
        separator, end = b",\n    ", b"\n  ]"
    yield end
    for key, value in tail().items():
        yield b"," + _field(key, value)
    yield b"\n}\n"


def _field(key: str, value: Any) -> bytes:
    return b"\n  " + _encoded(key, None) + b": " + _indented(value, 1)


def _indented(value: Any, depth: int) -> bytes:
    # A line break within a string is escaped: those that are left are between the fields.
    return _encoded(value, INDENT).replace(b"\n", b"\n" + b" " * (INDENT * depth))


def _encoded(value: Any, indent: int | None) -> bytes:
    """Half a surrogate pair, which a model's JSON can hold and UTF-8 cannot, becomes a `?`."""
    try:
        text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(value), ensure_ascii=False, indent=indent)
    return text.encode(errors="replace")


def _finite(value: Any) -> Any:
    """The value with nothing for what JSON has no number for."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: _finite(one) for key, one in value.items()}
        case list() | tuple():
            return [_finite(one) for one in value]
        case _:
            return value
