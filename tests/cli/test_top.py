"""`perdure top`, as an operator starts it."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command import Perdure, clean_environment, model_options

pytestmark = pytest.mark.long


async def test_the_work_of_all_users_is_shown_once(
    perdure: Perdure, script: Callable[..., str]
) -> None:
    options = model_options(script({"content": "later", "delay": 600}))
    ran = await perdure("run", "Think.", "--detach", *options, "-ojson")
    name = ran.json["conversation_id"]
    while name not in (line := (await perdure("top")).out):
        await asyncio.sleep(0.2)
    [mine] = [row.split("\t") for row in line.splitlines() if row.startswith(name)]
    assert mine[2] == "running"
    assert len(mine) == 12
    shown = (await perdure("top", "-ojson", "--user", "local")).json
    assert name in {item["id"] for item in shown["conversations"]}
    assert {it["workers"] for it in shown["queues"].values()} == {1}
    screen = (await perdure.with_env(FORCE_COLOR="1", COLUMNS="160")("top", "--once")).out
    assert "1 for steps" in screen
    assert "1 for models" in screen
    assert name[:13] in screen
    nobody = await perdure("top", "--user", "nobody")
    assert (nobody.code, nobody.out) == (0, "")
    assert "No conversation is at work." in nobody.err
    await perdure("close", name)


async def test_without_servers_a_sentence_says_what_to_do(tmp_path: Path) -> None:
    nowhere = Perdure({**clean_environment(), "PERDURE_DATA": str(tmp_path)})
    refused = await nowhere("top")
    assert refused.code == 6
    assert "perdure dev" in refused.err
