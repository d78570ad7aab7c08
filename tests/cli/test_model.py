"""Runs whose model is called over HTTP, through litellm in the worker."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.agent.spec import ModelSpec
from perdure.models.model import Request
from perdure.models.router import ModelRouter
from tests.cli.command import Perdure, interrupt, tool_call_answer, wait_for_line

DEMO = Path(__file__).parents[2] / "examples" / "demo" / "script.json"


@pytest.mark.long
async def test_a_model_or_a_key_that_is_refused_ends_the_turn_with_what_to_do(
    perdure: Perdure,
) -> None:
    unknown, no_key = await asyncio.gather(
        perdure("run", "Go.", "--model", "no-such-provider/m", "-ojson"),
        perdure("run", "Go.", "--model", "openai/guarded", "-ojson"),
    )
    for done, code, hint in (
        (unknown, "model_not_found", "no-such-provider/m: write PROVIDER/MODEL"),
        (no_key, "auth", "set OPENAI_API_KEY in the worker's environment"),
    ):
        result = done.json
        assert (done.code, result["status"]) == (1, "error"), done
        assert result["reason"].startswith(f"{code}: "), result
        page = await perdure("show", result["conversation_id"])
        assert "user        Go." in page.out, "the message is not lost"
        assert hint in page.out
        assert "sk-not-the-right-key" not in page.out + done.out


@pytest.mark.long
async def test_a_script_is_played_over_http_for_as_long_as_the_command_runs(
    perdure: Perdure, script: Callable[..., str]
) -> None:
    path = script(
        tool_call_answer("think", thought="Hm."), tool_call_answer("finish", message="All done.")
    )
    done = await perdure("run", "Go.", "--script", path, "-ojson")
    assert done.code == 0, done
    assert done.json["model"] == "openai/default"
    assert "while this command runs" in done.err


@pytest.mark.long
async def test_a_file_with_several_scripts_needs_the_name_of_one(
    perdure: Perdure, tmp_path: Path
) -> None:
    path = tmp_path / "two.json"
    script = {"answers": [{"content": "Here."}]}
    path.write_text(json.dumps({"first": script, "second": script}))
    done = await perdure("run", "Go.", "--script", str(path), "-ojson")
    assert (done.code, "first, second" in done.error["message"]) == (2, True)
    done = await perdure("run", "Go.", "--script", str(path), "--model", "second", "-ojson")
    assert (done.code, done.json["model"]) == (0, "openai/second")


@pytest.mark.long
async def test_model_serve_serves_a_script(perdure: Perdure) -> None:
    async with perdure.start("model", "serve", str(DEMO), "-ojsonl") as server:
        served = json.loads(await wait_for_line(server.stdout, "base_url"))
        spec = ModelSpec(name="openai/default", api_base=served["base_url"])
        request = Request(spec, [{"role": "user", "content": "Go."}])
        answer = await ModelRouter().complete(request, lambda _: None)
        port = served["base_url"].split(":")[2].split("/")[0]
        taken = await perdure("model", "serve", str(DEMO), "--port", port, "-ojson")
        ended = await interrupt(server)
    assert answer.message.tool_calls is not None
    assert (taken.code, ended.code) == (4, 130)
