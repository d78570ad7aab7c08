"""A tool is found by the name that a model gives it, if only one can be meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.tool_names import meant

TOOLS = ("terminal", "file_editor", "think", "mcp__git_hub__search")


@pytest.mark.parametrize(
    ("written", "tool"),
    [
        ("terminal", "terminal"),
        ("Terminal ", "terminal"),
        ("fileEditor", "file_editor"),
        ("file-editor", "file_editor"),
        ("FILE EDITOR", "file_editor"),
        ("functions.terminal", "terminal"),
        ("functions.terminal:0", "terminal"),
        ("tool.file-editor", "file_editor"),
        ("default_api:think", "think"),
        ("assistant to=functions.think", "think"),
        ("think()", "think"),
        ("terminal<|channel|>commentary", "terminal"),
        ("functions.terminal<|constrain|>json", "terminal"),
        ("mcp.git-hub.search", "mcp__git_hub__search"),
        ("execute_bash", "terminal"),
        ("functions.Bash", "terminal"),
        ("shell", "terminal"),
        ("str_replace_editor", "file_editor"),
        ("str_replace_based_edit_tool", "file_editor"),
    ],
)
def test_what_was_meant_is_found(written: str, tool: str) -> None:
    assert meant(written, TOOLS) == tool


@pytest.mark.parametrize("written", ["", "fly", "search", "term", "<|x|>", "terminal.fly"])
def test_nothing_is_guessed(written: str) -> None:
    assert meant(written, TOOLS) is None


def test_a_name_that_could_be_two_tools_is_neither() -> None:
    assert meant("FOO", ["foo", "Foo"]) is None
    assert meant("Foo", ["foo", "Foo"]) == "Foo"
    assert meant("functions.a b", ["a-b", "a_b"]) is None


def test_an_alias_is_one_only_where_no_tool_is_called_so() -> None:
    assert meant("bash", ["bash", "terminal"]) == "bash"
    assert meant("Bash", ["bash", "terminal"]) == "bash"
    assert meant("bash", ["file_editor"]) is None


@given(st.text(), st.sets(st.text(), max_size=4))
def test_whatever_is_written_it_is_one_of_the_tools_or_none(written: str, tools: set[str]) -> None:
    found = meant(written, tools)
    assert found is None or found in tools
    assert found == written or written not in tools
