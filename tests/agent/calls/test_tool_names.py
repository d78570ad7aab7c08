"""A misspelled tool name is resolved if only one tool can be meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agent.calls.answer import resolve_tool_name

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
def test_a_misspelled_tool_name_is_resolved(written: str, tool: str) -> None:
    assert resolve_tool_name(written, TOOLS) == tool


@pytest.mark.parametrize("written", ["", "fly", "search", "term", "<|x|>", "terminal.fly"])
def test_an_ambiguous_or_foreign_name_is_not_resolved(written: str) -> None:
    assert resolve_tool_name(written, TOOLS) is None


def test_a_name_that_fits_two_tools_is_not_resolved() -> None:
    assert resolve_tool_name("FOO", ["foo", "Foo"]) is None
    assert resolve_tool_name("Foo", ["foo", "Foo"]) == "Foo"
    assert resolve_tool_name("functions.a b", ["a-b", "a_b"]) is None


def test_a_tools_own_name_goes_before_an_alias() -> None:
    assert resolve_tool_name("bash", ["bash", "terminal"]) == "bash"
    assert resolve_tool_name("Bash", ["bash", "terminal"]) == "bash"
    assert resolve_tool_name("bash", ["file_editor"]) is None


@given(st.text(), st.sets(st.text(), max_size=4))
def test_any_name_resolves_to_a_tool_or_none(written: str, tools: set[str]) -> None:
    name = resolve_tool_name(written, tools)
    assert name is None or name in tools
    assert name == written or written not in tools
