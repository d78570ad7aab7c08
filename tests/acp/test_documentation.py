"""The settings of docs/clients/acp.md, as an editor reads them."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acp.editor import start_editor
from tests.cli.command import Perdure

PAGE = Path(__file__).parents[2] / "docs" / "clients" / "acp.md"
BLOCK = re.compile(r"^```json\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.long
async def test_the_settings_of_the_page_start_an_agent(
    perdure: Perdure, script: Callable[..., str], tmp_path: Path
) -> None:
    [block] = BLOCK.findall(PAGE.read_text())
    settings = json.loads(block)["agent_servers"]["perdure"]
    assert (settings["type"], settings["command"], settings["args"][0]) == (
        *("custom", "perdure"),
        "acp",
    )
    options = settings["args"][1:]
    model = options.index("--model") + 1
    options[model] = f"scripted:{script({'content': '5'})}"
    async with start_editor({**perdure.env, **settings["env"]}, *options) as run:
        session_id = await run.open(tmp_path)
        assert (await run.prompt(session_id, "2 + 3?")).stop_reason == "end_turn"
        assert run.editor.text() == "5"
