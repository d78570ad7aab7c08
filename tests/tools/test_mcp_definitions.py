"""Definitions of MCP tools have valid names, and hints only from trusted servers."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import Tool, ToolAnnotations

from perdure.agent.extensions import McpServer
from perdure.events import content
from perdure.tools.mcp.definitions import make_definition, name_prefix, public_name

NAMES = st.text(st.characters(codec="utf-8"), max_size=80)
HARMLESS = ToolAnnotations(
    title="Look",
    read_only_hint=True,
    destructive_hint=False,
    idempotent_hint=True,
    open_world_hint=False,
)


def make_annotations(trusted: bool, hints: ToolAnnotations | None) -> content.ToolAnnotations:
    tool = Tool(name="look", input_schema={"type": "object"}, annotations=hints)
    return make_definition(McpServer(name="s", trusted=trusted), tool).annotations


@given(NAMES, NAMES)
def test_every_name_fits_every_provider(server: str, tool: str) -> None:
    name = public_name(server, tool)
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", name)
    assert name.startswith(name_prefix(server))


@given(st.lists(NAMES, unique=True, max_size=5))
def test_different_tools_have_different_names(tools: list[str]) -> None:
    assert len({public_name("server", tool) for tool in tools}) == len(tools)


def test_a_name_that_fits_is_left_as_it_is() -> None:
    assert public_name("airline", "get_user-details") == "airline__get_user-details"
    assert public_name("files", "a.b") == "files__a_b_9640ca39"


def test_the_hints_of_a_trusted_server_are_believed() -> None:
    assert make_annotations(True, HARMLESS) == content.ToolAnnotations(
        title="Look",
        readOnlyHint=True,
        destructiveHint=False,
        idempotentHint=True,
        openWorldHint=False,
    )
    assert make_annotations(True, ToolAnnotations(read_only_hint=True)).destructiveHint is False
    assert (
        make_annotations(True, ToolAnnotations())
        == make_annotations(True, None)
        == content.ToolAnnotations()
    )


def test_the_hints_of_any_other_server_change_nothing() -> None:
    assert make_annotations(False, HARMLESS) == content.ToolAnnotations(title="Look")
    assert not make_annotations(False, HARMLESS).repeatable


@pytest.mark.parametrize("schema", [{"type": "object"}, {"properties": {}}])
def test_a_schema_always_has_what_providers_ask_for(schema: dict[str, object]) -> None:
    tool = Tool.model_construct(name="t", input_schema=schema, description="Does it.")
    definition = make_definition(McpServer(name="s"), tool)
    assert definition.parameters == {"type": "object", "properties": {}}
    assert definition.description == "Does it."
