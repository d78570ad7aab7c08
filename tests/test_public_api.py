"""The names that programs import from `perdure`."""

import ast
import json
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import perdure
from perdure import Agent, Invalid, ModelSpec

INIT = Path(perdure.__file__)
SLOW = {"boto3", "litellm", "pyarrow", "rich", "typer"}


def modules_after(statement: str) -> set[str]:
    """The top-level modules that a process has loaded after a statement."""
    code = f"{statement}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=INIT.parents[1],
    )
    return {name.partition(".")[0] for name in json.loads(ended.stdout)}


def test_importing_the_package_imports_no_other() -> None:
    loaded = modules_after("import perdure")
    assert not loaded & (SLOW | {"pydantic", "temporalio", "asyncio"})


def test_a_client_imports_no_model_terminal_or_store_library() -> None:
    assert not modules_after("from perdure import Client") & SLOW


def test_every_public_name_can_be_imported_and_is_known_to_type_checkers() -> None:
    [block] = [
        node
        for node in ast.parse(INIT.read_text()).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    typed = {
        alias.asname: f"{statement.module}.{alias.name}"
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert sorted(name for name in typed if name) == perdure.__all__ == dir(perdure)
    for name in perdure.__all__:
        module = getattr(perdure, name).__module__ if name != "AnyEvent" else "perdure.events.event"
        assert typed[name] == f"{module}.{name}"
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        perdure.__getattr__("Nothing")


def weather(city: str) -> str:
    """Report the weather in a city."""
    return city


def test_an_agent_takes_the_name_of_a_model_and_functions_as_tools() -> None:
    agent = Agent(model="openai/gpt-5", tools=["finish", weather], fallbacks=["openai/gpt-4o"])
    assert agent.model == ModelSpec(name="openai/gpt-5")
    assert agent.fallbacks == (ModelSpec(name="openai/gpt-4o"),)
    assert agent.tools == ("finish", f"{__name__}:weather")
    assert Agent.model_validate_json(agent.model_dump_json()) == agent


@pytest.mark.parametrize(
    ("fields", "message", "hint"),
    [
        ({"tools": [3]}, "3 is no tool", "a function with type hints"),
        ({"tools": [lambda: ""]}, "cannot be imported by a worker", "module of its own"),
        ({"modle": "x"}, "An agent has no 'modle'", "It has model"),
        ({"idle_timeout": -1}, "idle_timeout: input should be greater than 0", ""),
    ],
)
def test_an_invalid_agent_is_refused_in_a_sentence(
    fields: dict[str, object], message: str, hint: str
) -> None:
    with pytest.raises(Invalid, match=message) as refused:
        Agent(model="m", **fields)  # type: ignore[arg-type]
    assert hint in refused.value.hint
    assert hint in "".join(traceback.format_exception(refused.value))
    assert "\n" not in str(refused.value)


def test_an_agent_without_a_model_is_refused() -> None:
    with pytest.raises(Invalid, match="An agent needs a model") as refused:
        Agent()
    assert "Agent(model=" in refused.value.hint


def test_a_tool_that_is_no_function_is_refused() -> None:
    with pytest.raises(Invalid, match="'weather' is no function"):
        perdure.tool("weather")  # type: ignore[call-overload]
    assert perdure.tool(weather) is perdure.tool(read_only=True)(weather) is weather


def test_settings_of_an_unknown_name_are_refused_in_a_sentence() -> None:
    with pytest.raises(perdure.PerdureError, match="There is no setting 'stoer'") as refused:
        perdure.Settings(stoer="file:///tmp")  # type: ignore[call-arg]
    assert "\n" not in str(refused.value)
