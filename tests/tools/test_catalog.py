"""Tools are found by name or by `module:attribute`, and what is wrong is told in a sentence."""

import importlib
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tools.catalog import BUILT_IN, DuplicateTool, ToolNotFound, UntypedTool, catalog, find

Write = Callable[[str], str]

WEATHER = '''
"""Tools of somebody else."""
from tools.function import tool, tool_from

LIMIT = 3

async def today(city: str) -> str:
    """The weather of today."""
    return f"sunny in {city}"

@tool(name="forecast", read_only=True)
def tomorrow(city: str) -> str:
    return "rain"

ready_made = tool_from(today)
both = [ready_made, tomorrow]
mixed = (today, 3)
def untyped(city): ...
def terminal(command: str) -> str: ...
'''

NAMES = [
    "delegate",
    "terminal",
    "file_editor",
    "apply_patch",
    "grep",
    "glob",
    "task_tracker",
    "think",
    "finish",
]


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Write]:
    """Make a module of this source, and give its name."""
    made: list[str] = []

    def module(source: str) -> str:
        name = f"module_{uuid.uuid4().hex}"
        (tmp_path / f"{name}.py").write_text(source)
        importlib.invalidate_caches()
        made.append(name)
        return name

    sys.path.insert(0, str(tmp_path))
    yield module
    sys.path.remove(str(tmp_path))
    for name in made:
        sys.modules.pop(name, None)


def names(reference: str) -> list[str]:
    return [tool.name for tool in find(reference)]


def test_built_in_tools_are_listed_under_their_own_names() -> None:
    assert list(BUILT_IN) == NAMES
    for name, tool in BUILT_IN.items():
        assert find(name) == (tool,)
        assert tool.name == name
        assert tool.definition.description.strip()
        assert tool.definition.parameters["type"] == "object"


def test_a_module_may_offer_functions_tools_and_toolsets(write: Write) -> None:
    module = write(WEATHER)
    assert names(f"{module}:today") == ["today"]
    assert names(f"{module}:tomorrow") == ["forecast"]
    assert names(f"{module}:ready_made") == ["today"]
    assert names(f"{module}:both") == ["today", "forecast"]


def test_a_catalog_has_the_tools_of_all_references_in_order(write: Write) -> None:
    module = write(WEATHER)
    found = catalog(["think", f"{module}:both", "finish"])
    assert list(found) == ["think", "today", "forecast", "finish"]
    assert all(name == tool.name for name, tool in found.items())
    assert catalog([]) == {}


def test_two_tools_of_one_name_are_refused(write: Write) -> None:
    module = write(WEATHER)
    with pytest.raises(DuplicateTool) as raised:
        catalog(["terminal", f"{module}:terminal"])
    assert str(raised.value) == (
        f"Two tools are called 'terminal', from 'terminal' and '{module}:terminal': leave one out "
        "or rename it with `@tool(name=...)`."
    )
    with pytest.raises(ValueError, match="Two tools are called 'think', from 'think' and 'think'"):
        catalog(["think", "think"])


@pytest.mark.parametrize("reference", ["browser", "", ":", "a:", ":a"])
def test_an_unknown_name_is_told_with_what_there_is(reference: str) -> None:
    with pytest.raises(ToolNotFound) as raised:
        find(reference)
    assert str(raised.value) == (
        f"There is no tool {reference!r}. Built in are {', '.join(NAMES)}; name one of your own "
        "as `module:attribute`."
    )


def test_an_unknown_attribute_is_told_with_what_there_is(write: Write) -> None:
    module = write(WEATHER)
    with pytest.raises(ToolNotFound) as raised:
        find(f"{module}:yesterday")
    assert str(raised.value) == (
        f"Tool '{module}:yesterday': module '{module}' has no attribute 'yesterday'. It has today, "
        "tomorrow, ready_made, untyped, terminal."
    )
    empty = write("")
    with pytest.raises(ToolNotFound, match=r"It has nothing that could be a tool\.$"):
        find(f"{empty}:anything")


def test_something_that_is_no_tool_is_refused(write: Write) -> None:
    module = write(WEATHER)
    for attribute in ("LIMIT", "mixed"):
        with pytest.raises(ToolNotFound) as raised:
            find(f"{module}:{attribute}")
        assert str(raised.value) == (
            f"Tool '{module}:{attribute}' leads to a int: it must be a Tool, a function, or a list "
            "of these."
        )
    with pytest.raises(ToolNotFound, match="leads to a str: it must be a Tool"):
        find(f"{module}:__doc__")


def test_a_function_that_makes_no_tool_says_why(write: Write) -> None:
    with pytest.raises(UntypedTool, match=r"Parameter `city` of tool 'untyped' needs a type hint"):
        find(f"{write(WEATHER)}:untyped")


def test_a_module_that_is_not_there_is_told() -> None:
    with pytest.raises(ToolNotFound) as raised:
        find("no_such_module:tool")
    assert str(raised.value) == (
        "Tool 'no_such_module:tool': module 'no_such_module' cannot be imported: "
        "ModuleNotFoundError: No module named 'no_such_module'."
    )


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_all'."),
        ("1 / 0", "ZeroDivisionError: division by zero."),
        ("raise SystemExit(2)", "SystemExit: 2."),
        ("def f(:", "SyntaxError: invalid syntax (MODULE.py, line 1)."),
    ],
)
def test_a_module_that_cannot_be_imported_says_why(write: Write, source: str, reason: str) -> None:
    module = write(source)
    with pytest.raises(ToolNotFound) as raised:
        find(f"{module}:tool")
    assert str(raised.value) == (
        f"Tool '{module}:tool': module '{module}' cannot be imported: "
        f"{reason.replace('MODULE', module)}"
    )


@pytest.mark.parametrize("name", [".", "..tools", ".relative"])
def test_a_relative_module_is_refused(name: str) -> None:
    with pytest.raises(ToolNotFound, match="cannot be imported: TypeError"):
        find(f"{name}:tool")
