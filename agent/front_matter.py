"""The fields between two lines of dashes at the head of a markdown file."""

import re
from itertools import accumulate
from typing import Any

# A parser of text and nothing else, so the core may use it: no clock, no files.
import yaml  # type: ignore[import-untyped]

LONGEST = 16 * 1024
"""Characters of a front matter: a YAML parser takes its time, and is fed by strangers."""

DEEPEST = 32
"""Brackets in brackets: the parser's time grows with the square of these."""

_HEAD = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_KEPT = r"""[|>][+-]?|\[[^\[\]]*\]|\{[^{}]*\}|'[^']*'|"[^"]*\""""
_PLAIN = re.compile(rf"^([ \t]*-[ \t]+|[\w-]+:[ \t]+)(?!(?:{_KEPT})[ \t]*$)(\S.*)$", re.MULTILINE)


def split(text: str) -> tuple[dict[str, Any], str]:
    """The fields, and the text after them; a text may also have none.

    Every scalar is a string: a name such as `no` or `1.0` stays what its author wrote. Raises
    ValueError.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if (head := _HEAD.match(text)) is None:
        return {}, text
    if len(head[1]) > LONGEST:
        raise ValueError(f"its front matter has over {LONGEST:,} characters")
    if _depth(head[1]) > DEEPEST:
        raise ValueError(f"its front matter is over {DEEPEST} brackets deep")
    fields = _fields(head[1])
    return (fields, text[head.end() :]) if isinstance(fields, dict) else ({}, text)


def _depth(written: str) -> int:
    return max(accumulate((one in "[{") - (one in "]}") for one in written), default=0)


def _fields(written: str) -> Any:
    """What real files hold is often not YAML: `globs: *.py`, or a second colon in a sentence.

    So what cannot be read is read once more with all plain values in quotes.
    """
    try:
        return _loaded(written)
    except ValueError:
        return _loaded(_PLAIN.sub(_quoted, written))


def _quoted(line: re.Match[str]) -> str:
    value = line[2].rstrip().replace("'", "''")
    return f"{line[1]}'{value}'"


def _loaded(written: str) -> Any:
    try:
        return yaml.load(written, Loader=yaml.BaseLoader) or {}
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        problem = getattr(error, "problem", None) or type(error).__name__
        raise ValueError(f"its front matter is not YAML ({problem})") from error
