"""The body of a request, in the bytes that litellm and the openai client would send.

A conversation only grows: what of it was written before is kept, so that a request costs what is
new in it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from perdure.models.capabilities import Capabilities
from perdure.models.direct.json_text import dump, without_nulls
from perdure.models.direct.pieces import MAX_KEPT_BYTES, KeptPieces
from perdure.models.direct.tool_patterns import keeps_patterns
from perdure.models.message_adapter import SIGNATURE_SEPARATOR, adapt_messages
from perdure.models.model import Request
from perdure.models.openai_compatible.route import OpenAIRoute

Json: TypeAlias = Mapping[str, Any]

ADAPTED = (b'"reasoning_content"', b'"thinking_blocks"', SIGNATURE_SEPARATOR.encode())
"""What the JSON of a message has if it has to be adapted, besides content in parts."""

REFUSED_BY_OPENAI = {"oneOf", "anyOf", "allOf", "enum", "const", "not"}
"""What OpenAI refuses at the top of a tool's parameters; litellm rewrites such parameters."""


class Piece(NamedTuple):
    """The JSON of one message."""

    message: Json
    text: bytes
    is_result: bool
    moved: bytes = b""
    """The images of a tool result: they follow in a user message, after the last result."""

    @property
    def size(self) -> int:
        return len(self.text) + len(self.moved)


class BodyWriter:
    """Writes the bodies of requests; messages must not be changed after they were passed."""

    def __init__(self, max_kept_bytes: int = MAX_KEPT_BYTES) -> None:
        self.kept: KeptPieces[Piece] = KeptPieces(max_kept_bytes)
        self._has_moved = False

    def write(self, request: Request, route: OpenAIRoute, *, stream: bool) -> bytes:
        """Write the body, its fields in the order of the openai client."""
        fields = _other_fields(request, route, stream)
        messages = b",".join(self._messages(request.messages, route.capabilities))
        rest = b"".join(b"," + dump(name) + b":" + dump(fields[name]) for name in sorted(fields))
        # OpenAI's own server takes metadata only with answers that it shall store.
        if request.metadata and not route.is_openai:
            rest += b',"metadata":' + dump(dict(request.metadata))
        return b'{"messages":[' + messages + b'],"model":' + dump(route.model) + rest + b"}"

    def _messages(self, messages: Sequence[Json], capabilities: Capabilities) -> Iterable[bytes]:
        if capabilities.cache_marks:  # they move with the end of the prompt
            return [dump(without_nulls(each)) for each in adapt_messages(messages, capabilities)]
        known, add = self.kept.of_form(capabilities), self.kept.add
        pieces = [
            known.get(id(message)) or add(known, self._write_piece(message, capabilities))
            for message in messages
        ]
        if self._has_moved:
            return _place_images(pieces)
        return [piece.text for piece in pieces]

    def _write_piece(self, message: Json, capabilities: Capabilities) -> Piece:
        text, moved = dump(without_nulls(message)), b""
        if isinstance(message.get("content"), list) or any(mark in text for mark in ADAPTED):
            adapted, *images = adapt_messages([message], capabilities)
            text = dump(without_nulls(adapted))
            moved = b",".join(dump(part) for each in images for part in each["content"])
        self._has_moved = self._has_moved or bool(moved)
        return Piece(message, text, message.get("role") == "tool", moved)


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


def _other_fields(request: Request, route: OpenAIRoute, stream: bool) -> dict[str, Any]:
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
    return keeps_patterns(parameters)
