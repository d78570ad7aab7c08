"""Agents as TOML, for people: `tomllib` reads it back."""

import json
from collections.abc import Mapping
from typing import Any

from perdure.agent.layers import Fields

NO_COMMENTS: Mapping[str, str] = {}


def dump_toml(fields: Fields, comments: Mapping[str, str] = NO_COMMENTS) -> str:
    """Write fields without None as TOML that `tomllib` reads back.

    A comment stands behind the field of its path, or of the table above it.
    """

    def line(path: str, key: str, value: Any) -> str:
        comment = comments.get(path, comments.get(path.partition(".")[0]))
        text = f"{key} = {_inline(value)}"
        return text if comment is None else f"{text}  # {' '.join(comment.split())}"

    tables = {name: value for name, value in fields.items() if isinstance(value, dict)}
    lines = [line(name, name, fields[name]) for name in fields if name not in tables]
    for name, table in tables.items():
        lines += ["", f"[{name}]"]
        lines += [line(f"{name}.{key}", _key(key), table[key]) for key in table]
    return "\n".join(lines).lstrip("\n")


def _inline(value: Any) -> str:
    match value:
        case dict():
            return f"{{ {', '.join(f'{_key(key)} = {_inline(value[key])}' for key in value)} }}"
        case list() | tuple():
            return f"[{', '.join(map(_inline, value))}]"
        case str():
            return _quote(value)
        case _:
            return json.dumps(value)


def _quote(text: str) -> str:
    """Quote as JSON does, which TOML reads but for one control character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "a").isalnum() else _quote(name)
