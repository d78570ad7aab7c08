"""Runs whose model is asked over HTTP, through litellm in the worker."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.spec import ModelSpec
from models.model import Request
from models.models import Models
from tests.cli.command import Perdure, calls, interrupted, line_with

DEMO = Path(__file__).parents[2] / "examples" / "demo" / "script.json"


@pytest.mark.long
async def test_a_model_or_a_key_that_is_refused_ends_the_turn_with_what_to_do(
    perdure: Perdure,
) -> None:
    unknown, no_key = await asyncio.gather(
        perdure("run", "Go.", "--model", "no-such-provider/m", "-ojson"),
        perdure("run", "Go.", "--model", "openai/guarded", "-ojson"),
    )
    for done, code, say in (
        (unknown, "model_not_found", "no-such-provider/m: write PROVIDER/MODEL"),
        (no_key, "auth", "set OPENAI_API_KEY in the worker's environment"),
    ):
        result = done.json["result"]
        assert (done.code, result["status"]) == (1, "error"), done
        assert result["reason"].startswith(f"{code}: "), result
        shown = await perdure("show", result["conversation_id"])
        assert "user        Go." in shown.out, "the message is not lost"
        assert say in shown.out
        assert "sk-not-the-right-key" not in shown.out + done.out


@pytest.mark.long
async def test_a_script_is_played_over_http_for_as_long_as_the_command_runs(
    perdure: Perdure, script: Callable[..., str]
) -> None:
    path = script(calls("think", thought="Hm."), calls("finish", message="All done."))
    done = await perdure("run", "Go.", "--script", path, "-ojson")
    assert done.code == 0, done
    assert done.json["result"]["model"] == "openai/default"
    assert "while this command runs" in done.err


@pytest.mark.long
async def test_a_script_with_several_parts_asks_which(perdure: Perdure, tmp_path: Path) -> None:
    path = tmp_path / "two.json"
    one = {"answers": [{"content": "Here."}]}
    path.write_text(json.dumps({"first": one, "second": one}))
    done = await perdure("run", "Go.", "--script", str(path), "-ojson")
    assert (done.code, "first, second" in done.error["message"]) == (2, True)
    done = await perdure("run", "Go.", "--script", str(path), "--model", "second", "-ojson")
    assert (done.code, done.json["result"]["model"]) == (0, "openai/second")


@pytest.mark.long
async def test_a_script_can_be_served_by_itself(perdure: Perdure) -> None:
    async with perdure.started("model", "serve", str(DEMO), "-ojsonl") as server:
        served = json.loads(await line_with(server.stdout, "base_url"))
        spec = ModelSpec(name="openai/default", api_base=served["base_url"])
        asked = Request(spec, [{"role": "user", "content": "Go."}])
        answer = await Models().complete(asked, lambda _: None)
        port = served["base_url"].split(":")[2].split("/")[0]
        taken = await perdure("model", "serve", str(DEMO), "--port", port, "-ojson")
        ended = await interrupted(server)
    assert answer.message.tool_calls is not None
    assert (taken.code, ended.code) == (4, 130)
