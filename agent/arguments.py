"""From the text that a model wrote as the arguments of a call to a JSON object."""

import json
import re
from typing import Any

from events.depth import is_deeper

# Strings are matched whole (to the end, where they have none), so that nothing in them counts.
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
_CLOSERS = {"{": "}", "[": "]"}
_ANOTHER = re.compile(r"\s*\{")
_OF_USE = re.compile(r"\s*[,:]|[^\"'{\[]*[\"'{\[]")
"""Text behind an object that may be a part of it: of a string that ended too early, say."""

_MOST_QUOTED = 3


def arguments_of(raw: str, *, cut: bool = False) -> dict[str, Any]:
    """The model's text as a JSON object; no text at all means no arguments.

    Mends what can be meant in one way only: a code fence around it, a comma after the last item,
    control characters, Python's spelling, an object that was quoted or sent twice, something
    behind the object, brackets that were never closed. `cut` says that the text may have been cut
    off: then nothing that is missing is put there. Raises ValueError with a sentence for the model.
    """
    if not raw.strip():
        if cut:
            raise ValueError("The arguments are missing.")
        return {}
    decoded = value_of(raw, cut=cut)
    for _ in range(_MOST_QUOTED):
        if isinstance(decoded, str) and decoded.lstrip()[:1] in ("{", '"'):
            decoded = value_of(decoded, cut=cut)
    if decoded is None or decoded == "":
        return {}
    if not isinstance(decoded, dict):
        raise ValueError(f"The arguments must be one JSON object, not {_named(decoded)}.")
    return decoded


def value_of(text: str, *, cut: bool = False) -> Any:
    """The JSON value that a text stands for, mended as `arguments_of` says; raises ValueError."""
    try:
        try:
            decoded = _decoded(text)
        except json.JSONDecodeError:
            decoded = _mended(text, cut)
        _check_storable(decoded)
    except RecursionError as error:
        raise ValueError("The arguments are nested too deeply: send a flatter object.") from error
    return decoded


def _mended(text: str, cut: bool) -> Any:
    found = _FENCE.match(text)
    kept, end = _first(text, found.end() if found else 0, cut)
    while _ANOTHER.match(text, end):
        value, end = _first(text, end, cut)
        if kept not in ({}, value) and value != {}:
            raise ValueError("The arguments hold more than one JSON object: make a call for each.")
        kept = kept or value
    rest = text[end:]
    if _OF_USE.match(rest):
        raise ValueError(
            "The arguments are not valid JSON: more text follows the object, near "
            f"{text[max(0, end - 20) : end + 20]!r}. Send one JSON object."
        )
    return kept


def _first(text: str, start: int, cut: bool) -> tuple[Any, int]:
    """The first value in `text` from `start` on, and where it ends."""
    written, end = _as_json(text, start, cut)
    try:
        return _decoded(written), end
    except json.JSONDecodeError as error:
        if not cut:  # what closing it did not mend is told of as it came
            return _first(text, start, cut=True)
        near = written[max(0, error.pos - 20) : error.pos + 20]
        raise ValueError(
            f"The arguments are not valid JSON: {error.msg} at line {error.lineno}, column "
            f"{error.colno}, near {near!r}. Send one JSON object."
        ) from error


def _as_json(text: str, start: int, cut: bool) -> tuple[str, int]:
    out: list[str] = []
    unclosed: list[str] = []
    last = -1  # of what is not space
    for found in _TOKEN.finditer(text, start):
        token = _translated(found[0])
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
                return "".join(out), found.end()
    if last >= 0 and not cut and out[last] not in (",", ":", "{", "["):
        out += [_CLOSERS[bracket] for bracket in reversed(unclosed)]
    return "".join(out), len(text)


def _translated(token: str) -> str:
    if token.startswith('"'):
        return token
    if token.startswith("'"):
        return _double_quoted(token)
    if token.isspace():
        return _NO_JSON_SPACE.sub(" ", token)
    word = _CONTROL.sub("", token)
    return _PYTHON.get(word, word)


def _double_quoted(token: str) -> str:
    """A string in single quotes as JSON writes it; one that does not end, as it is."""
    if len(token) < 2 or not token.endswith("'"):
        return token
    return f'"{_ESCAPED.sub(_escape, token[1:-1])}"'


def _escape(found: re.Match[str]) -> str:
    if found[1]:
        return f"\\u00{found[1]}"
    return {"\\'": "'", '"': '\\"'}.get(found[0], found[0])


def _decoded(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except json.JSONDecodeError:
        raise
    except ValueError as error:  # Python reads no more than 4,300
        raise ValueError(
            "The arguments hold a number of too many digits: send it as a string."
        ) from error


def _check_storable(decoded: Any) -> None:
    if is_deeper(decoded):
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


def _named(value: Any) -> str:
    kinds = {list: "a list", str: "a string", bool: "a boolean"}
    return kinds.get(type(value), "a number")
