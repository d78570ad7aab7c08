"""Tools are resolved by name or `module:attribute`, and errors are sentences."""

import importlib
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perdure.tools.catalog import BUILT_IN_TOOLS, load_tools, resolve_tools
from perdure.tools.errors import DuplicateTool, ToolNotFound, UntypedTool

Write = Callable[[str], str]

WEATHER = '''
"""Tools of somebody else."""
from perdure.tools.function import tool, tool_from

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
    "ipython",
    "file_editor",
    "apply_patch",
    "grep",
    "glob",
    "task_tracker",
    "recall",
    "remember",
    "state",
    "wait",
    "ask_user",
    "think",
    "finish",
    "reject_task",
    "request_condensation",
]


def test_a_tool_without_its_extra_says_which_command_installs_it() -> None:
    program = (
        "import sys; sys.modules['IPython'] = None\n"
        "from perdure.tools.catalog import load_tools\n"
        "try: load_tools(['ipython'])\nexcept ValueError as error: print(error)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout == (
        "The tool 'ipython' needs `pip install 'perdure[ipython]'` where the worker runs.\n"
    )


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
    return [tool.name for tool in resolve_tools(reference)]


def test_built_in_tools_are_listed_under_their_own_names() -> None:
    assert list(BUILT_IN_TOOLS) == NAMES
    for name, tool in BUILT_IN_TOOLS.items():
        assert resolve_tools(name) == (tool,)
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
    tools = load_tools(["think", f"{module}:both", "finish"])
    assert list(tools) == ["think", "today", "forecast", "finish"]
    assert all(name == tool.name for name, tool in tools.items())
    assert load_tools([]) == {}


def test_two_tools_of_one_name_are_refused(write: Write) -> None:
    module = write(WEATHER)
    with pytest.raises(DuplicateTool) as raised:
        load_tools(["terminal", f"{module}:terminal"])
    assert str(raised.value) == (
        f"Two tools are called 'terminal', from 'terminal' and '{module}:terminal': leave one out "
        "or rename it with `@tool(name=...)`."
    )
    with pytest.raises(ValueError, match="Two tools are called 'think', from 'think' and 'think'"):
        load_tools(["think", "think"])


@pytest.mark.parametrize("reference", ["browser", "", ":", "a:", ":a"])
def test_an_unknown_name_is_reported_with_the_known_ones(reference: str) -> None:
    with pytest.raises(ToolNotFound) as raised:
        resolve_tools(reference)
    assert str(raised.value) == (
        f"There is no tool {reference!r}. Built in are {', '.join(NAMES)}; name one of your own "
        "as `module:attribute`."
    )


def test_an_unknown_attribute_is_reported_with_the_known_ones(write: Write) -> None:
    module = write(WEATHER)
    with pytest.raises(ToolNotFound) as raised:
        resolve_tools(f"{module}:yesterday")
    assert str(raised.value) == (
        f"Tool '{module}:yesterday': module '{module}' has no attribute 'yesterday': it has LIMIT, "
        "today, tomorrow, ready_made, both, mixed, untyped, terminal."
    )
    empty = write("")
    with pytest.raises(ToolNotFound, match=r"it has nothing of its own\.$"):
        resolve_tools(f"{empty}:anything")


def test_something_that_is_no_tool_is_refused(write: Write) -> None:
    module = write(WEATHER)
    for attribute in ("LIMIT", "mixed"):
        with pytest.raises(ToolNotFound) as raised:
            resolve_tools(f"{module}:{attribute}")
        assert str(raised.value) == (
            f"Tool '{module}:{attribute}' leads to a int: it must be a Tool, a function, or a list "
            "of these."
        )
    with pytest.raises(ToolNotFound, match="leads to a str: it must be a Tool"):
        resolve_tools(f"{module}:__doc__")


def test_a_function_that_makes_no_tool_says_why(write: Write) -> None:
    with pytest.raises(UntypedTool, match=r"Parameter `city` of tool 'untyped' needs a type hint"):
        resolve_tools(f"{write(WEATHER)}:untyped")


def test_a_missing_module_is_reported() -> None:
    with pytest.raises(ToolNotFound) as raised:
        resolve_tools("no_such_module:tool")
    assert str(raised.value).startswith(
        "Tool 'no_such_module:tool': module 'no_such_module' cannot be found: it is not installed, "
        f"and not in {Path.cwd()}"
    )


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(2)", "SystemExit: 2"),
        ("def f(:", "SyntaxError: invalid syntax"),
    ],
)
def test_a_module_that_cannot_be_imported_says_why(
    write: Write, tmp_path: Path, source: str, reason: str
) -> None:
    module = write(source)
    with pytest.raises(ToolNotFound) as raised:
        resolve_tools(f"{module}:tool")
    assert str(raised.value) == (
        f"Tool '{module}:tool': module '{module}' cannot be imported: "
        f"{reason}, at {tmp_path / module}.py:1."
    )


@pytest.mark.parametrize("name", [".", "..tools", ".relative"])
def test_a_relative_module_is_refused(name: str) -> None:
    with pytest.raises(ToolNotFound, match="cannot be imported: TypeError"):
        resolve_tools(f"{name}:tool")
