"""The patterns in the parameters of tools: litellm drops those that Python cannot compile."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perdure.models.direct.json_text import dump


def keeps_patterns(parameters: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether litellm sends the parameters of tools with all their patterns."""
    # To look for the word is faster than to walk through every schema.
    return b'"pattern' not in dump(parameters) or all(
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
