"""Every tool there is, and how those of others are found."""

import importlib
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

from tools.apply_patch import APPLY_PATCH
from tools.delegate import DELEGATE
from tools.file_editor import FILE_EDITOR
from tools.finish import FINISH
from tools.function import Function, tool_from
from tools.glob import GLOB
from tools.grep import GREP
from tools.task_tracker import TASK_TRACKER
from tools.terminal import TERMINAL
from tools.think import THINK
from tools.tool import Tool

BUILT_IN: dict[str, Tool] = {
    "delegate": DELEGATE,
    "terminal": TERMINAL,
    "file_editor": FILE_EDITOR,
    "apply_patch": APPLY_PATCH,
    "grep": GREP,
    "glob": GLOB,
    "task_tracker": TASK_TRACKER,
    "think": THINK,
    "finish": FINISH,
}


class CatalogError(ValueError):
    """An agent cannot have these tools; the text says why, and what there is instead."""


class ToolNotFound(CatalogError):
    """A reference leads to no tool."""


class UntypedTool(CatalogError):
    """A function that a model could not know how to call."""


class DuplicateTool(CatalogError):
    """Two tools of one agent have the same name, so that the model could not tell them apart."""


def catalog(references: Iterable[str]) -> dict[str, Tool]:
    """The tools of an agent by name, in the order of the references.

    Raises CatalogError.
    """
    found: dict[str, tuple[Tool, str]] = {}
    for reference in references:
        for tool in find(reference):
            if tool.name in found:
                raise DuplicateTool(
                    f"Two tools are called {tool.name!r}, from {found[tool.name][1]!r} and "
                    f"{reference!r}: leave one out or rename it with `@tool(name=...)`."
                )
            found[tool.name] = (tool, reference)
    return {name: tool for name, (tool, _) in found.items()}


def find(reference: str) -> tuple[Tool, ...]:
    """The tools behind a built-in name, or behind `module:attribute`.

    The attribute is a Tool, a function, or a sequence of either. Raises ToolNotFound, UntypedTool.
    """
    if reference in BUILT_IN:
        return (BUILT_IN[reference],)
    name, colon, attribute = reference.partition(":")
    if not (colon and name and attribute):
        raise ToolNotFound(
            f"There is no tool {reference!r}. Built in are {', '.join(BUILT_IN)}; name one of "
            "your own as `module:attribute`."
        )
    module = _module(reference, name)
    if not hasattr(module, attribute):
        raise ToolNotFound(
            f"Tool {reference!r}: module {name!r} has no attribute {attribute!r}. It has "
            f"{', '.join(_candidates(module)) or 'nothing that could be a tool'}."
        )
    return tuple(_tools(reference, getattr(module, attribute)))


def _module(reference: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        # Another's code may raise anything; whatever it is, the operator is told in one sentence.
        raise ToolNotFound(
            f"Tool {reference!r}: module {name!r} cannot be imported: "
            f"{type(error).__name__}: {error}."
        ) from error


def _candidates(module: ModuleType) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (isinstance(value, Tool) or getattr(value, "__module__", None) == module.__name__)
    ][:20]


def _tools(reference: str, value: Any) -> Iterator[Tool]:
    for item in value if _is_toolset(value) else (value,):
        if isinstance(item, Tool):
            yield item
        elif callable(item):
            yield _tool(reference, item)
        else:
            raise ToolNotFound(
                f"Tool {reference!r} leads to a {type(item).__name__}: it must be a Tool, a "
                "function, or a list of these."
            )


def _tool(reference: str, function: Function) -> Tool:
    try:
        return tool_from(function)
    except TypeError as error:
        raise UntypedTool(f"Tool {reference!r} cannot be used: {error}") from error


def _is_toolset(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
