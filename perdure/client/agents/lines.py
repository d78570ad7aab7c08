"""The lines of TOML and of front matter in which keys stand, for errors."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any


def find_toml_line(text: str, path: str) -> int | None:
    """Return the line, from 1, in which the key of a dotted path begins; None without it.

    A key is in the first lines that are TOML by themselves and have it. For a path that the text
    has not in full, the line is that of its longest part.
    """
    keys = [key for key in re.split(r"[.\[\]]+", path) if key]
    while keys:
        begin = 1
        for end, table in _parse_heads(text):
            if _has(table, keys):
                return _skip_blank(text, begin, end)
            begin = end + 1
        keys.pop()
    return None


def _parse_heads(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the table of the first lines, wherever these are TOML."""
    lines = text.splitlines()
    for end in range(1, len(lines) + 1):
        try:
            yield end, tomllib.loads("\n".join(lines[:end]))
        except (ValueError, RecursionError):
            continue


def _has(value: Any, keys: list[str]) -> bool:
    for key in keys:
        if isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        elif isinstance(value, Mapping) and key in value:
            value = value[key]
        else:
            return False
    return True


def _skip_blank(text: str, begin: int, end: int) -> int:
    lines = text.splitlines()[begin - 1 : end]
    blank = (not line.strip() or line.lstrip().startswith("#") for line in lines)
    return begin + next((nth for nth, is_blank in enumerate(blank) if not is_blank), 0)


def find_yaml_line(text: str, path: str) -> int | None:
    """Return the line, from 1, of the last key of a dotted path, each sought behind the other."""
    at = None
    lines = text.splitlines()
    for key in path.split("."):
        pattern = re.compile(rf"\s*(- )?[\"']?{re.escape(key)}[\"']?\s*:")
        found = (nth for nth in range(at or 0, len(lines)) if pattern.match(lines[nth]))
        if (line := next(found, None)) is None:
            break
        at = line + 1
    return at
