"""The code of docs/clients/ag-ui.md, as a program of its own."""

import re
from pathlib import Path

import pytest

from perdure.storage.credentials.api_keys import create_api_key
from tests.gateway.ag_ui.environment import ready
from tests.gateway.ag_ui.node import run_node
from tests.gateway.ag_ui.stage import AgUiStage

PAGE = Path(__file__).parents[3] / "docs" / "clients" / "ag-ui.md"
BLOCK = re.compile(r"^```javascript\n(.*?)^```$", re.DOTALL | re.MULTILINE)

TALKS = {
    "adder": ["I add.", "[add]", "It is 5.", "finished", "user assistant tool reasoning assistant"],
    "asker": [
        *("[add]", "[add]", "waiting_for_confirmation"),
        "user assistant tool tool assistant",
    ],
}


@pytest.mark.long
@pytest.mark.skipif(not ready(), reason="NOT CHECKED: @ag-ui/client is not installed: `make ag-ui`")
@pytest.mark.parametrize("agent", TALKS)
async def test_the_code_of_the_page_runs(ag_ui_stage: AgUiStage, agent: str) -> None:
    stage = ag_ui_stage.gateway
    key = (await create_api_key(stage.gateway.store, "docs", "ag-ui")).secret
    [code] = BLOCK.findall(PAGE.read_text())
    assert "/ag-ui/coder" in code
    code = code.replace("/ag-ui/coder", f"/ag-ui/{agent}")
    out = await run_node(code, PERDURE_GATEWAY=stage.url, PERDURE_GATEWAY_KEY=key)
    assert [line for line in out.splitlines() if line] == TALKS[agent]
