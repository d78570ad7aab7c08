"""Calling the tools that search, and filling a workspace for them."""

import os
from pathlib import Path
from typing import Any

import pytest

from events.content import text_of
from tests.tools.conftest import Place
from tools.tool import Tool, ToolFailed


async def said(tool: Tool, place: Place, **arguments: Any) -> str:
    observation = await tool.run(tool.parse(arguments), place.context)
    assert not observation.is_error
    return text_of(observation.content)


async def refusal(tool: Tool, place: Place, **arguments: Any) -> str:
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
