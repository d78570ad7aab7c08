"""The code of docs/clients/openai.md, as a program of its own."""

import re
import sys
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from perdure.storage.credentials.api_keys import create_api_key
from tests.gateway.openai.stage import OpenAiStage

PAGE = Path(__file__).parents[3] / "docs" / "clients" / "openai.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.long
async def test_the_code_of_the_page_runs(openai_stage: OpenAiStage) -> None:
    stage = openai_stage.gateway
    key = await create_api_key(stage.gateway.store, "docs", "openai")
    [code] = BLOCK.findall(PAGE.read_text())
    program = await create_subprocess_exec(
        *(sys.executable, "-c", code.replace('"coder"', '"adder"')),
        env={"OPENAI_BASE_URL": f"{stage.url}/openai/v1", "OPENAI_API_KEY": key.secret},
        stdout=PIPE,
        stderr=PIPE,
    )
    out, errors = await program.communicate()
    assert program.returncode == 0, errors.decode()
    lines = out.decode().splitlines()
    assert lines[:4] == [
        "['adder', 'asker', 'broken', 'sleeper', 'speaker']",
        "I add.",
        "",
        "It is 5.",
    ]
    assert lines[4].startswith("0 response.created")
    assert "Answer 2." in lines
    assert lines[-2].endswith("response.completed")
    assert lines[-1] == "completed"
