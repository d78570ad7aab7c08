"""Which tool a model means by the name it wrote."""

import re
from collections.abc import Collection, Iterator

ALIASES = {
    "execute_bash": "terminal",
    "bash": "terminal",
    "shell": "terminal",
    "str_replace_editor": "file_editor",
    "str_replace_based_edit_tool": "file_editor",
}
"""What models have been taught to call tools like ours."""

_GARBAGE = re.compile(r"[<>{}()\[\]\"'`\n]|:\d+\s*\Z")
_SEPARATOR = re.compile(r"[./:]")


def meant(name: str, tools: Collection[str]) -> str | None:
    """The one tool that `name` can mean; None where there is none, or more than one.

    The name itself, or else the same letters whatever their case and what stands between them,
    without a namespace in front (`functions.`) or a model's own marks behind (`<|channel|>`);
    or else what other agents call such a tool.
    """
    if name in tools:
        return name
    spelled = tuple(_spellings(name))
    for key in spelled:
        same = [tool for tool in tools if _letters(tool) == key]
        if same:
            return same[0] if len(same) == 1 else None
    known = (tool for alias, tool in ALIASES.items() if _letters(alias) in spelled)
    return next((tool for tool in known if tool in tools), None)


def _spellings(name: str) -> Iterator[str]:
    """The letters of a name as it is, then of ever less of it."""
    bare = name[: found.start()] if (found := _GARBAGE.search(name)) else name
    for part in (name, bare, _SEPARATOR.split(bare)[-1]):
        if letters := _letters(part):
            yield letters


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name)).casefold()
