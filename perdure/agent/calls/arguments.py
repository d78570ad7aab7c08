"""The arguments of a model's tool call: parsed, and rendered for a prompt."""

import json
import re
from typing import Any

from perdure.events.actions import MCPToolAction
from perdure.events.nesting import exceeds_depth
from perdure.events.tools import ActionEvent

# A string is one token (up to the end, if unterminated), so that its brackets do not count.
_TOKEN = re.compile(
    r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)'
    r"|'(?:[^'\\]++|\\.)*+(?:'|\\?\Z)"
    r"|[\[\]{},:]|\s+|[^\s\"'\[\]{},:]+",
    re.DOTALL,
)
_FENCE = re.compile(r"\s*```[ \t]*(?:json\b)?", re.IGNORECASE)
_ESCAPED = re.compile(r'\\x([0-9a-fA-F]{2})|\\(.)|"', re.DOTALL)
_NO_JSON_SPACE = re.compile(r"[^ \t\r\n]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ufeff\u200b]+")
_PYTHON = {"True": "true", "False": "false", "None": "null"}
_KINDS = {list: "a list", str: "a string", bool: "a boolean"}
_CLOSERS = {"{": "}", "[": "]"}
_NEXT_OBJECT = re.compile(r"\s*\{")
_CONTINUATION = re.compile(r"\s*[,:]|[^\"'{\[]*[\"'{\[]")
"""Text behind an object that may belong to it: the rest of a string that ended too early."""

_MAX_QUOTING = 3


def parse_arguments(raw: str, *, cut: bool = False) -> dict[str, Any]:
    """Parse the model's text as a JSON object; empty text means no arguments.

    Repairs what has only one possible meaning: a code fence around it, a comma after the last item,
    control characters, Python's spelling, an object that was quoted or sent twice, text behind the
    object, unclosed brackets. With `cut` the text may have been cut off: nothing is added at its
    end. Raises ValueError with a sentence for the model.
    """
    if not raw.strip():
        if cut:
            raise ValueError("The arguments are missing.")
        return {}
    decoded = parse_value(raw, cut=cut)
    for _ in range(_MAX_QUOTING):
        if isinstance(decoded, str) and decoded.lstrip()[:1] in ("{", '"'):
            decoded = parse_value(decoded, cut=cut)
    if decoded is None or decoded == "":
        return {}
    if not isinstance(decoded, dict):
        kind = _KINDS.get(type(decoded), "a number")
        raise ValueError(f"The arguments must be one JSON object, not {kind}.")
    return decoded


def parse_value(text: str, *, cut: bool = False) -> Any:
    """Parse a text as a JSON value, with the repairs of `parse_arguments`; raises ValueError."""
    try:
        try:
            decoded = _decode(text)
        except json.JSONDecodeError:
            decoded = _repair(text, cut)
        _check_storable(decoded)
    except RecursionError as error:
        raise ValueError("The arguments are nested too deeply: send a flatter object.") from error
    return decoded


def _repair(text: str, cut: bool) -> Any:
    fence = _FENCE.match(text)
    first, end = _parse_first(text, fence.end() if fence else 0, cut)
    while _NEXT_OBJECT.match(text, end):
        value, end = _parse_first(text, end, cut)
        if first not in ({}, value) and value != {}:
            raise ValueError("The arguments hold more than one JSON object: make a call for each.")
        first = first or value
    rest = text[end:]
    if _CONTINUATION.match(rest):
        raise ValueError(
            "The arguments are not valid JSON: more text follows the object, near "
            f"{text[max(0, end - 20) : end + 20]!r}. Send one JSON object."
        )
    return first


def _parse_first(text: str, start: int, cut: bool) -> tuple[Any, int]:
    """Return the first value in `text` from `start` on, and its end."""
    repaired, end = _normalize(text, start, cut)
    try:
        return _decode(repaired), end
    except json.JSONDecodeError as error:
        if not cut:  # report the error in the text as it came
            return _parse_first(text, start, cut=True)
        near = repaired[max(0, error.pos - 20) : error.pos + 20]
        raise ValueError(
            f"The arguments are not valid JSON: {error.msg} at line {error.lineno}, column "
            f"{error.colno}, near {near!r}. Send one JSON object."
        ) from error


def _normalize(text: str, start: int, cut: bool) -> tuple[str, int]:
    out: list[str] = []
    unclosed: list[str] = []
    last = -1  # index of the last token that is not space
    for match in _TOKEN.finditer(text, start):
        token = _normalize_token(match[0])
        if token in ("}", "]"):
            if last >= 0 and out[last] == ",":
                out[last] = ""
            del unclosed[-1:]
        elif token in _CLOSERS:
            unclosed.append(token)
        out.append(token)
        if token.strip():
            last = len(out) - 1
            if not unclosed:
                return "".join(out), match.end()
    if last >= 0 and not cut and out[last] not in (",", ":", "{", "["):
        out += [_CLOSERS[bracket] for bracket in reversed(unclosed)]
    return "".join(out), len(text)


def _normalize_token(token: str) -> str:
    """Convert a token to JSON; an unterminated string stays as it is."""
    if len(token) > 1 and token[0] == token[-1] == "'":
        return f'"{_ESCAPED.sub(_escape, token[1:-1])}"'
    if token[0] in "'\"":
        return token
    if token.isspace():
        return _NO_JSON_SPACE.sub(" ", token)
    word = _CONTROL.sub("", token)
    return _PYTHON.get(word, word)


def _escape(match: re.Match[str]) -> str:
    if match[1]:
        return f"\\u00{match[1]}"
    return {"\\'": "'", '"': '\\"'}.get(match[0], match[0])


def _decode(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except json.JSONDecodeError:
        raise
    except ValueError as error:  # Python reads at most 4,300 digits
        raise ValueError(
            "The arguments hold a number of too many digits: send it as a string."
        ) from error


def _check_storable(decoded: Any) -> None:
    if exceeds_depth(decoded):
        raise ValueError("The arguments are nested too deeply: send a flatter object.")
    try:
        json.dumps(decoded, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            "The arguments hold half a surrogate pair: write the character itself, or both halves."
        ) from error
    except ValueError as error:
        raise ValueError(
            "The arguments hold NaN or a number without bounds: send a plain number or null."
        ) from error


def render_arguments(event: ActionEvent) -> str:
    """Return the arguments as the model wrote them, or the parsed ones if providers reject those.

    Some providers reject a prompt with anything but a plain JSON object.
    """
    arguments = event.tool_call.arguments
    try:
        decoded = json.loads(arguments, parse_constant=_reject_constant)
        json.dumps(decoded, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        decoded = None
    if isinstance(decoded, dict):
        return arguments
    match event.action:
        case None:
            return "{}"
        case MCPToolAction(data=data):
            return json.dumps(data)
        case action:
            return action.model_dump_json(exclude_defaults=True)


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
