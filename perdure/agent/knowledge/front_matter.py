"""The front matter of a markdown file: fields between two lines of dashes at its head."""

import re
from itertools import accumulate
from typing import Any

# A pure parser, without clock or files, so the core may use it.
import yaml  # type: ignore[import-untyped]

MAX_FRONT_MATTER_CHARS = 16 * 1024
"""Characters of a front matter: parsing strangers' YAML takes time."""

MAX_BRACKET_DEPTH = 32
"""Nested brackets: the parser's time grows with the square of their depth."""

_HEAD = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_QUOTED_VALUE = r"""[|>][+-]?|\[[^\[\]]*\]|\{[^{}]*\}|'[^']*'|"[^"]*\""""
_PLAIN_VALUE = re.compile(
    rf"^([ \t]*-[ \t]+|[\w-]+:[ \t]+)(?!(?:{_QUOTED_VALUE})[ \t]*$)(\S.*)$", re.MULTILINE
)


def split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Return the fields and the text after them; a text may also have no fields.

    Every scalar is a string: a name such as `no` or `1.0` stays as its author wrote it. Raises
    ValueError.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if (head := _HEAD.match(text)) is None:
        return {}, text
    if len(head[1]) > MAX_FRONT_MATTER_CHARS:
        raise ValueError(f"its front matter has over {MAX_FRONT_MATTER_CHARS:,} characters")
    if _bracket_depth(head[1]) > MAX_BRACKET_DEPTH:
        raise ValueError(f"its front matter is over {MAX_BRACKET_DEPTH} brackets deep")
    fields = _parse_fields(head[1])
    return (fields, text[head.end() :]) if isinstance(fields, dict) else ({}, text)


def _bracket_depth(source: str) -> int:
    return max(accumulate((char in "[{") - (char in "]}") for char in source), default=0)


def _parse_fields(source: str) -> Any:
    """Parse the fields, if need be with all plain values in quotes.

    Real files often hold what is not YAML: `globs: *.py`, or a second colon in a sentence.
    """
    try:
        return _load_yaml(source)
    except ValueError:
        return _load_yaml(_PLAIN_VALUE.sub(_quote_value, source))


def _quote_value(line: re.Match[str]) -> str:
    value = line[2].rstrip().replace("'", "''")
    return f"{line[1]}'{value}'"


def _load_yaml(source: str) -> Any:
    try:
        return yaml.load(source, Loader=yaml.BaseLoader) or {}
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        problem = getattr(error, "problem", None) or type(error).__name__
        raise ValueError(f"its front matter is not YAML ({problem})") from error
