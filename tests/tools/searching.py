"""Calling the tools that search, and filling a workspace for them."""

import os
from pathlib import Path
from typing import Any

import pytest

from perdure.events.content import join_text
from perdure.tools.tool import Tool, ToolFailed
from tests.tools.conftest import ToolBench


async def run_tool(tool: Tool, place: ToolBench, **arguments: Any) -> str:
    observation = await tool.run(tool.parse(arguments), place.context)
    assert not observation.is_error
    return join_text(observation.content)


async def refusal(tool: Tool, place: ToolBench, **arguments: Any) -> str:
    with pytest.raises(ToolFailed) as raised:
        await tool.run(tool.parse(arguments), place.context)
    return str(raised.value)


def fill(workspace: Path, **texts: str) -> None:
    """Write files; those named later are newer. `__` in a name stands for `/`."""
    for age, (name, text) in enumerate(texts.items()):
        write(workspace, name.replace("__", "/"), text, age)


def write(workspace: Path, name: str, text: str, age: int = 0) -> None:
    path = workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (1_700_000_000 + age, 1_700_000_000 + age))
