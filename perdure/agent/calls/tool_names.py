"""The resolution of tool names that a model misspelled."""

import re
from collections.abc import Collection, Iterator

ALIASES = {
    "execute_bash": "terminal",
    "bash": "terminal",
    "shell": "terminal",
    "str_replace_editor": "file_editor",
    "str_replace_based_edit_tool": "file_editor",
}
"""Names that models were trained to use for tools like ours."""

_GARBAGE = re.compile(r"[<>{}()\[\]\"'`\n]|:\d+\s*\Z")
_SEPARATOR = re.compile(r"[./:]")


def resolve_tool_name(name: str, tools: Collection[str]) -> str | None:
    """Return the only tool that `name` can mean, or None.

    Tries the name itself, then its letters and digits in any case, without a namespace in front
    (`functions.`) or a model's markers behind (`<|channel|>`), then names that other agents use for
    such a tool.
    """
    if name in tools:
        return name
    spellings = tuple(_spellings(name))
    for key in spellings:
        same = [tool for tool in tools if _letters(tool) == key]
        if same:
            return same[0] if len(same) == 1 else None
    aliased = (tool for alias, tool in ALIASES.items() if _letters(alias) in spellings)
    return next((tool for tool in aliased if tool in tools), None)


def _spellings(name: str) -> Iterator[str]:
    """Yield the letters of the name, then of ever shorter parts of it."""
    bare = name[: match.start()] if (match := _GARBAGE.search(name)) else name
    for part in (name, bare, _SEPARATOR.split(bare)[-1]):
        if letters := _letters(part):
            yield letters


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name)).casefold()
