"""The body of a request to Anthropic: what litellm would send.

A conversation only grows: what of it was written before is kept, so that a request costs what is
new in it. Only the messages with cache marks, which move with its end, are written in two forms.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from perdure.models.anthropic.messages import (
    DUMMY_TOOL,
    SIDES,
    NotDirect,
    Side,
    convert_message,
    convert_tool,
)
from perdure.models.anthropic.route import AnthropicRoute
from perdure.models.capabilities import Capabilities
from perdure.models.direct.json_text import dump, without_nulls
from perdure.models.direct.pieces import MAX_KEPT_BYTES, KeptPieces
from perdure.models.direct.tool_patterns import keeps_patterns
from perdure.models.message_adapter import adapt_message, find_cache_marks, lacks_thinking
from perdure.models.model import Request

Json: TypeAlias = Mapping[str, Any]

THINKING_BUDGETS = {"minimal": 1024, "low": 1024, "medium": 2048, "high": 4096}
"""litellm's budgets in tokens, for models that do not choose their own."""

TURNS = {
    "user": b']},{"role":"user","content":[',
    "assistant": b']},{"role":"assistant","content":[',
}
"""The end of one message and the begin of the next, by its side."""

USER_ID = "user_id"
"""The only word of metadata that Anthropic takes."""

ADAPTIVE_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high"}


class Piece(NamedTuple):
    """The JSON of one message: the blocks that it becomes."""

    message: Json
    side: Side
    blocks: tuple[bytes, ...]
    call_ids: tuple[str | None, ...]
    """The id of each block that is a tool call."""
    text: bytes
    """All blocks."""

    @property
    def size(self) -> int:
        return len(self.text) * (2 if len(self.blocks) > 1 else 1)


class Prompt(NamedTuple):
    """The converted prompt of a request."""

    request: Request
    system: bytes
    """The blocks of the system's message."""
    turns: bytes
    """The messages, in which user and assistant take turns."""
    tools: Sequence[Json]


class BodyWriter:
    """Writes the bodies of requests; messages must not be changed after they were passed."""

    def __init__(self, max_kept_bytes: int = MAX_KEPT_BYTES) -> None:
        self.kept: KeptPieces[Piece] = KeptPieces(max_kept_bytes)
        self._prompt: Prompt | None = None
        """The prompt that was converted to see whether it can be, for the body that follows."""

    def can_write(self, request: Request, route: AnthropicRoute) -> bool:
        """Tell whether the body would be litellm's."""
        try:
            self._prompt = self._convert(request, route.capabilities)
        except NotDirect:
            return False
        return True

    def write(self, request: Request, route: AnthropicRoute, *, stream: bool) -> bytes:
        """Write the body. Raises NotDirect where `can_write` does not allow it."""
        prompt, self._prompt = self._prompt, None
        if prompt is None or prompt.request is not request:
            prompt = self._convert(request, route.capabilities)
        fields = _other_fields(prompt, route, stream)
        head = b'{"model":' + dump(route.model) + b',"messages":[' + prompt.turns + b"]"
        if prompt.system:
            head += b',"system":[' + prompt.system + b"]"
        rest = b"".join(b"," + dump(name) + b":" + dump(value) for name, value in fields.items())
        return head + rest + b"}"

    def _convert(self, request: Request, capabilities: Capabilities) -> Prompt:
        """Convert the prompt. Raises NotDirect."""
        tools, pieces = _convert_tools(request), self._pieces(request.messages, capabilities)
        begin = next((at for at, piece in enumerate(pieces) if piece.side != "system"), None)
        if begin is None:
            raise NotDirect
        system = b",".join(piece.text for piece in pieces[:begin] if piece.text)
        conversation = _strip_end(pieces[begin:], capabilities)
        return Prompt(request, system, b"".join(_write_turns(conversation)), tools)

    def _pieces(self, messages: Sequence[Json], capabilities: Capabilities) -> list[Piece]:
        known, add = self.kept.of_form(capabilities), self.kept.add
        pieces = [
            known.get(id(message)) or add(known, _write_piece(message, capabilities))
            for message in messages
        ]
        if capabilities.cache_marks:
            marked = self.kept.of_form((capabilities, "marked"))
            for index in find_cache_marks(messages):
                message = messages[index]
                pieces[index] = marked.get(id(message)) or add(
                    marked, _write_piece(message, capabilities, is_marked=True)
                )
        return pieces


def _write_piece(
    message: Json, capabilities: Capabilities, *, is_marked: bool = False, strip: bool = False
) -> Piece:
    """Write a message; `strip` the white space at the end of texts, which Anthropic refuses there.

    Raises NotDirect.
    """
    side = SIDES.get(str(message.get("role")))
    if side is None:
        raise NotDirect
    adapted = without_nulls(adapt_message(message, capabilities, is_marked=is_marked))
    blocks = convert_message(adapted)
    if strip:
        blocks = [_strip(block) for block in blocks]
    texts = tuple(dump(block) for block in blocks)
    ids = tuple(block["id"] if block["type"] == "tool_use" else None for block in blocks)
    return Piece(message, side, texts, ids, b",".join(texts))


def _strip(block: Json) -> Json:
    return {**block, "text": block["text"].rstrip()} if block["type"] == "text" else block


def _strip_end(pieces: list[Piece], capabilities: Capabilities) -> list[Piece]:
    """Strip the texts of the answer at the end of a prompt."""
    end = len(pieces)
    while end and pieces[end - 1].side == "assistant":
        end -= 1
    final = [_write_piece(each.message, capabilities, strip=True) for each in pieces[end:]]
    return [*pieces[:end], *final] if final else pieces


def _write_turns(pieces: Sequence[Piece]) -> list[bytes]:
    """Write messages, in which sides take turns: the pieces of one side become one message.

    Raises NotDirect for a system's message, for which litellm finds another place.
    """
    parts: list[bytes] = []
    side, begin, is_open = "", 0, False
    for at, piece in enumerate(pieces):
        text = piece.text
        if piece.side != side:
            side, begin, is_open = piece.side, at, False
            if side == "system":
                raise NotDirect
        elif side == "assistant":
            text = b",".join(_new_blocks(piece, pieces[begin:at]))
        if text:
            parts.append(b"," if is_open else TURNS[side] if parts else TURNS[side][3:])
            parts.append(text)
            is_open = True
    return [*parts, b"]}"] if parts else parts


def _new_blocks(piece: Piece, earlier: Iterable[Piece]) -> Iterator[bytes]:
    """Yield the blocks of an answer without the tool calls of earlier ones in the same turn."""
    seen = {call_id for each in earlier for call_id in each.call_ids if call_id is not None}
    for call_id, block in zip(piece.call_ids, piece.blocks, strict=True):
        if call_id not in seen:
            yield block


def _other_fields(prompt: Prompt, route: AnthropicRoute, stream: bool) -> dict[str, Any]:
    request, spec = prompt.request, prompt.request.model
    fields = {
        "max_tokens": spec.max_output_tokens or route.max_tokens,
        "temperature": spec.temperature,
        "stop_sequences": list(request.stop) or None,
        "metadata": {USER_ID: user} if (user := request.metadata.get(USER_ID)) else None,
        "tools": prompt.tools or None,
        **_thinking_fields(request, route),
        "stream": stream or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _thinking_fields(request: Request, route: AnthropicRoute) -> Json:
    effort = request.model.reasoning_effort
    if effort in (None, "none") or not route.capabilities.effort:
        return {}
    if lacks_thinking(request.messages):
        return {}
    if route.is_adaptive:
        thinking = {"type": "adaptive", "display": "summarized"}
        return {"thinking": thinking, "output_config": {"effort": ADAPTIVE_EFFORTS[effort]}}
    return {"thinking": {"type": "enabled", "budget_tokens": THINKING_BUDGETS[effort]}}


def _convert_tools(request: Request) -> list[Json]:
    tools = [convert_tool(tool) for tool in request.tools]
    if not keeps_patterns([tool["input_schema"] for tool in tools]):
        raise NotDirect
    if not tools and any(each.get("tool_calls") is not None for each in request.messages):
        return [DUMMY_TOOL]
    return tools
