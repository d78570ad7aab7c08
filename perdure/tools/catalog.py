"""The built-in tools, and the loading of others by reference."""

import importlib.util
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from perdure.references import BadReference, find_entry_points, is_reference, load_named
from perdure.tools.apply_patch import APPLY_PATCH
from perdure.tools.delegate import DELEGATE
from perdure.tools.errors import DuplicateTool, ToolNotFound, UntypedTool
from perdure.tools.file_editor import FILE_EDITOR
from perdure.tools.function import tool_from
from perdure.tools.glob import GLOB
from perdure.tools.grep import GREP
from perdure.tools.ipython import IPYTHON
from perdure.tools.memory import RECALL, REMEMBER
from perdure.tools.session_state import STATE
from perdure.tools.speech import FINISH, REJECT_TASK, REQUEST_CONDENSATION, THINK
from perdure.tools.task_tracker import TASK_TRACKER
from perdure.tools.terminal import TERMINAL
from perdure.tools.tool import Tool
from perdure.tools.waiting.tools import ASK_USER, WAIT

TOOL_GROUP = "perdure.tools"
"""The entry points of tools of other packages."""

BUILT_IN_TOOLS: dict[str, Tool] = {
    "delegate": DELEGATE,
    "terminal": TERMINAL,
    "ipython": IPYTHON,
    "file_editor": FILE_EDITOR,
    "apply_patch": APPLY_PATCH,
    "grep": GREP,
    "glob": GLOB,
    "task_tracker": TASK_TRACKER,
    "recall": RECALL,
    "remember": REMEMBER,
    "state": STATE,
    "wait": WAIT,
    "ask_user": ASK_USER,
    "think": THINK,
    "finish": FINISH,
    "reject_task": REJECT_TASK,
    "request_condensation": REQUEST_CONDENSATION,
}

MODULES_OF_EXTRAS = {"ipython": "IPython"}
"""The module that a built-in tool needs, which comes with the extra of the tool's name."""


def load_tools(references: Iterable[str]) -> dict[str, Tool]:
    """Load the tools of an agent by name, in the order of `references`. Raises CatalogError."""
    tools: dict[str, tuple[Tool, str]] = {}
    for reference in references:
        for tool in resolve_tools(reference):
            if tool.name in tools:
                raise DuplicateTool(
                    f"Two tools are called {tool.name!r}, from {tools[tool.name][1]!r} and "
                    f"{reference!r}: leave one out or rename it with `@tool(name=...)`."
                )
            tools[tool.name] = (tool, reference)
    return {name: tool for name, (tool, _) in tools.items()}


def resolve_tools(reference: str) -> tuple[Tool, ...]:
    """Resolve a name, of a built-in tool or an entry point, or a `module:attribute` to its tools.

    The object is a Tool, a function, or a sequence of either. Raises ToolNotFound, UntypedTool.
    """
    if reference in BUILT_IN_TOOLS:
        _check_extra(reference)
        return (BUILT_IN_TOOLS[reference],)
    if not is_known_tool(reference):
        names = ", ".join((*BUILT_IN_TOOLS, *find_entry_points(TOOL_GROUP)))
        raise ToolNotFound(
            f"There is no tool {reference!r}. Built in are {names}; name one of your own as "
            "`module:attribute`."
        )
    try:
        return tuple(_to_tools(reference, load_named(TOOL_GROUP, reference)))
    except BadReference as error:
        raise ToolNotFound(f"Tool {reference!r}: {error}.") from error


def _check_extra(reference: str) -> None:
    module = MODULES_OF_EXTRAS.get(reference)
    if module is not None and importlib.util.find_spec(module) is None:
        raise ToolNotFound(
            f"The tool {reference!r} needs `pip install 'perdure[{reference}]'` where the worker "
            "runs."
        )


def is_known_tool(reference: str) -> bool:
    """Check whether there is a tool of this name, or the text is a `module:attribute`."""
    known = reference in BUILT_IN_TOOLS or is_reference(reference)
    return known or reference in find_entry_points(TOOL_GROUP)


def _to_tools(reference: str, value: Any) -> Iterator[Tool]:
    is_list = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    for item in value if is_list else (value,):
        if isinstance(item, Tool):
            yield item
        elif callable(item):
            try:
                yield tool_from(item)
            except TypeError as error:
                raise UntypedTool(f"Tool {reference!r} cannot be used: {error}") from error
        else:
            raise ToolNotFound(
                f"Tool {reference!r} leads to a {type(item).__name__}: it must be a Tool, a "
                "function, or a list of these."
            )
