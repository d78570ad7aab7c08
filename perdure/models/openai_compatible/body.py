"""The body of a request, in the bytes that litellm and the openai client would send.

A conversation only grows: what of it was written before is kept, so that a request costs what is
new in it.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from perdure.models.capabilities import Capabilities
from perdure.models.message_adapter import SIGNATURE_SEPARATOR, adapt_messages
from perdure.models.model import Request
from perdure.models.openai_compatible.route import Route

Json: TypeAlias = Mapping[str, Any]

MAX_KEPT_BYTES = 16 * 1024 * 1024
"""Bytes of JSON that are kept for the next requests."""

ADAPTED = (b'"reasoning_content"', b'"thinking_blocks"', SIGNATURE_SEPARATOR.encode())
"""What the JSON of a message has if it has to be adapted, besides content in parts."""

ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

REFUSED_BY_OPENAI = {"oneOf", "anyOf", "allOf", "enum", "const", "not"}
"""What OpenAI refuses at the top of a tool's parameters; litellm rewrites such parameters."""


class Piece(NamedTuple):
    """The JSON of one message."""

    message: Json
    """The message itself: as long as it is held, no other one has its identity."""
    text: bytes
    is_result: bool
    moved: bytes = b""
    """The images of a tool result: they follow in a user message, after the last result."""


class BodyWriter:
    """Writes the bodies of requests; messages must not be changed after they were passed."""

    def __init__(self, max_kept_bytes: int = MAX_KEPT_BYTES) -> None:
        self._max_kept_bytes = max_kept_bytes
        self._pieces: dict[Capabilities, dict[int, Piece]] = {}
        self._size = 0
        self._has_moved = False

    def write(self, request: Request, route: Route, *, stream: bool) -> bytes:
        """Write the body, its fields in the order of the openai client."""
        fields = _other_fields(request, route, stream)
        messages = b",".join(self._messages(request.messages, route.capabilities))
        rest = b"".join(b"," + _dump(name) + b":" + _dump(fields[name]) for name in sorted(fields))
        return b'{"messages":[' + messages + b'],"model":' + _dump(route.model) + rest + b"}"

    def _messages(self, messages: Sequence[Json], capabilities: Capabilities) -> Iterable[bytes]:
        if capabilities.cache_marks:  # they move with the end of the prompt
            return [_dump(_without_nulls(each)) for each in adapt_messages(messages, capabilities)]
        known = self._pieces.setdefault(capabilities, {})
        pieces = [
            known.get(id(message)) or self._add(known, message, capabilities)
            for message in messages
        ]
        if self._has_moved:
            return _place_images(pieces)
        return [piece.text for piece in pieces]

    def _add(self, known: dict[int, Piece], message: Json, capabilities: Capabilities) -> Piece:
        text, moved = _dump(_without_nulls(message)), b""
        if isinstance(message.get("content"), list) or any(mark in text for mark in ADAPTED):
            adapted, *images = adapt_messages([message], capabilities)
            text = _dump(_without_nulls(adapted))
            moved = b",".join(_dump(part) for each in images for part in each["content"])
        piece = Piece(message, text, message.get("role") == "tool", moved)
        self._size += len(piece.text) + len(piece.moved)
        self._has_moved = self._has_moved or bool(piece.moved)
        if self._size > self._max_kept_bytes:
            self._size = len(piece.text) + len(piece.moved)
            for pieces in self._pieces.values():
                pieces.clear()
        known[id(message)] = piece
        return piece


def _place_images(pieces: Iterable[Piece]) -> Iterator[bytes]:
    moved: list[bytes] = []
    for piece in pieces:
        if moved and not piece.is_result:
            yield _image_message(moved)
            moved = []
        yield piece.text
        moved += [piece.moved] if piece.moved else []
    if moved:
        yield _image_message(moved)


def _image_message(moved: Iterable[bytes]) -> bytes:
    return b'{"role":"user","content":[' + b",".join(moved) + b"]}"


def _other_fields(request: Request, route: Route, stream: bool) -> dict[str, Any]:
    spec, capabilities = request.model, route.capabilities
    fields = {
        "temperature": spec.temperature,
        "max_tokens": spec.max_output_tokens,
        "tools": list(request.tools) or None,
        "stop": (list(request.stop) or None) if capabilities.stop else None,
        "reasoning_effort": spec.reasoning_effort if capabilities.effort else None,
        "stream": stream or None,
        "stream_options": {"include_usage": True} if stream else None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def are_sent_unchanged(tools: Sequence[Json], is_openai: bool) -> bool:
    """Tell whether litellm sends the definitions of tools as they are.

    It drops patterns that Python cannot compile and, for OpenAI's own server, rewrites parameters
    that are no plain object.
    """
    parameters = [(tool.get("function") or {}).get("parameters") or {} for tool in tools]
    if is_openai and any(REFUSED_BY_OPENAI & each.keys() for each in parameters):
        return False
    # To look for the word is faster than to walk through every schema.
    return b'"pattern' not in _dump(parameters) or all(
        map(_is_python_pattern, _patterns(parameters))
    )


def _patterns(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        if isinstance(schema.get("patternProperties"), Mapping):
            yield from schema["patternProperties"]
    children = schema.values() if isinstance(schema, Mapping) else schema
    for child in children if isinstance(schema, Mapping | list) else ():
        yield from _patterns(child)


def _is_python_pattern(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _without_nulls(message: Json) -> Json:
    """Drop the null fields of a message, such as the content beside tool calls, as litellm does."""
    if None not in message.values():
        return message
    return {name: value for name, value in message.items() if value is not None}


def _dump(value: Any) -> bytes:
    # A surrogate without its pair has no UTF-8: the model gets a question mark.
    return ENCODER.encode(value).encode(errors="replace")
