"""Runs whose model is called over HTTP, through litellm in the worker."""

import asyncio
import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.agent.spec import ModelSpec
from perdure.cli.agent_toml import dump_toml
from perdure.embedded.stack import Stack
from perdure.models.model import Request
from perdure.models.router import ModelRouter
from perdure.storage.conversations import list_conversations
from perdure.storage.s3 import S3Store
from tests.cli.command import (
    Perdure,
    clean_environment,
    interrupt,
    model_options,
    tool_call_answer,
    wait_for_line,
)
from tests.cli.past_batch import InProcessCommand

DEMO = Path(__file__).parents[2] / "examples" / "demo" / "script.json"


@pytest.mark.long
async def test_a_key_that_is_refused_ends_the_turn_with_what_to_do(perdure: Perdure) -> None:
    done = await perdure("run", "Go.", "--model", "openai/guarded", "-ojson")
    result = done.json
    assert (done.code, result["status"]) == (1, "error"), done
    assert result["reason"].startswith("auth: "), result
    page = await perdure("show", result["conversation_id"])
    assert "user        Go." in page.out, "the message is not lost"
    assert "set OPENAI_API_KEY in the worker's environment" in page.out
    assert "sk-not-the-right-key" not in page.out + done.out


@pytest.mark.parametrize(
    ("model", "parts"),
    [
        ("no-such-provider/m", ("no provider 'no-such-provider'", "PROVIDER/MODEL")),
        ("anthropc/claude-sonnet-4-5", ("Did you mean anthropic/claude-sonnet-4-5?",)),
        ("gpt-4oo", ("There is no model gpt-4oo", "Did you mean gpt-4o")),
        ("http://127.0.0.1:1/v1", ("--model openai/NAME --api-base http://127.0.0.1:1/v1",)),
    ],
)
async def test_a_mistyped_model_is_refused_before_there_is_a_conversation(
    run_configured: InProcessCommand, store: S3Store, model: str, parts: tuple[str, ...]
) -> None:
    before = await list_conversations(store, "local", 1000)
    done = await asyncio.to_thread(run_configured, "run", "Go.", "--model", model, "-ojson")
    assert (done.code, done.error["code"]) == (2, "invalid")
    text = f"{done.error['message']} {done.error['hint']}"
    assert all(part in text for part in parts), text
    assert await list_conversations(store, "local", 1000) == before


async def test_a_missing_key_is_refused_before_a_stack_is_started(tmp_path: Path) -> None:
    bare = Perdure({**clean_environment(), "PERDURE_DATA": str(tmp_path / "data")})
    done = await bare("run", "Go.", "--model", "openai/gpt-5", "-ojson")
    assert (done.code, "OPENAI_API_KEY is not set" in done.error["message"]) == (2, True)
    assert not (tmp_path / "data").exists()


NO_PRICE = "the price of openai/a-model-of-mine is not known"

OWN_MODEL = ("--model", "openai/a-model-of-mine", "--api-base", "http://127.0.0.1:1/v1")


@pytest.mark.long
async def test_a_budget_that_no_price_can_keep_is_refused_before_a_stack_is_started(
    tmp_path: Path,
) -> None:
    bare = Perdure({**clean_environment(), "PERDURE_DATA": str(tmp_path / "data")})
    model = {"name": "openai/a-model-of-mine", "api_base": "http://127.0.0.1:1/v1"}
    batch = {"name": "b", "dataset": "d.jsonl", "model": "scripted:s.json"}
    files = {
        "s.json": {"answers": ["Here."]},
        "d.jsonl": {"id": "a", "input": "Go."},
        "a.json": batch | {"agent": {"fallbacks": [model]}, "limits": {"cost": 1}},
        "b.json": batch | {"model": model, "batch_limits": {"cost": 1}},
    }
    for name, document in files.items():
        (tmp_path / name).write_text(json.dumps(document))
    for name in ("a", "b"):
        document = json.loads((tmp_path / f"{name}.json").read_text())
        (tmp_path / f"{name}.toml").write_text(dump_toml(document))
    main, fallback, sample, batch_cost = await asyncio.gather(
        bare("run", "Go.", *OWN_MODEL, "--max-budget", "1", "-ojson"),
        bare(
            *("chat", "--model", f"scripted:{tmp_path}/s.json", "--max-budget", "1"),
            *("--fallback", "hosted_vllm/mine"),
        ),
        bare("batch", "run", str(tmp_path / "a.toml"), "-ojson"),
        bare("batch", "run", str(tmp_path / "b.toml"), "-ojson"),
    )
    for done in (main, sample, batch_cost):
        assert (done.code, NO_PRICE in done.error["message"]) == (2, True), done
    assert "model.input_price=" in main.error["hint"]
    assert 'name = "openai/a-model-of-mine", input_price' in sample.error["hint"]
    assert (fallback.code, "the price of hosted_vllm/mine" in fallback.err) == (2, True)
    assert not (tmp_path / "data").exists()


@pytest.mark.long
async def test_a_conversation_gets_no_budget_that_its_new_model_cannot_keep(
    perdure: Perdure, script: Callable[..., str]
) -> None:
    path = script({"content": "Here."}, {"content": "Again."})
    ran = await perdure("run", "Go.", *model_options(path), "--max-budget", "1", "-ojson")
    assert ran.code == 0, ran
    name = ran.json["conversation_id"]
    own = "model.name=openai/a-model-of-mine"
    refused, forked, priced = await asyncio.gather(
        perdure("configure", name, own, "-ojson"),
        perdure("fork", name, "--model", "hosted_vllm/mine", "-ojson"),
        perdure("configure", name, own, "model.input_price=0", "-ojson"),
    )
    assert (refused.code, NO_PRICE in refused.error["message"]) == (2, True)
    assert (forked.code, "hosted_vllm/mine" in forked.error["message"]) == (2, True)
    assert (priced.code, priced.json["agent"]["model"]["input_price"]) == (0, 0.0), priced


@pytest.mark.long
async def test_a_served_script_keeps_a_budget(perdure: Perdure, script: Callable[..., str]) -> None:
    path = script({"content": "Here.", "usage": {"prompt_tokens": 100}})
    free, priced = await asyncio.gather(
        perdure("run", "Go.", "--script", path, "--max-budget", "1", "-ojson"),
        perdure(
            *("run", "Go.", "--script", path, "--max-budget", "1", "-ojson"),
            *("-c", "model.input_price=100"),
        ),
    )
    assert (free.code, free.json["cost"]) == (0, 0.0), free
    assert (priced.code, priced.json["cost"] > 0) == (0, True), priced


@pytest.mark.long
async def test_a_key_that_the_worker_of_a_running_stack_lacks_is_refused_with_what_to_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("OPENAI_API_KEY", "OPENAI_API_BASE", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("GROQ_API_KEY", "known-by-name-alone")
    stack = await Stack.start(tmp_path, ui=False, worker=("/bin/sleep", "600"))
    try:
        record = (tmp_path / "stack.json").read_text()
        bare = Perdure({**clean_environment(), "PERDURE_DATA": str(tmp_path)})
        refused = await bare.with_env(OPENAI_API_KEY="sk-here")(
            "run", "Go.", "--model", "openai/gpt-4o", "-ojson"
        )
        named = await bare(
            *("run", "Go.", "--model", "groq/llama-3.3-70b-versatile"),
            *("--fallback", "openai/gpt-4o", "-ojson"),
        )
        listed = await bare("ls", "-ojson")
    finally:
        await stack.stop()
    assert "known-by-name-alone" not in record
    for done in (refused, named):
        assert done.code == 2, done
        assert "`perdure dev` was started without OPENAI_API_KEY" in done.error["message"]
        assert "start it again where OPENAI_API_KEY is set" in done.error["hint"]
    assert "It is set here" in refused.error["message"]
    assert "It is set here" not in named.error["message"]
    assert listed.json == []


@pytest.mark.long
async def test_a_missing_script_of_a_scripted_model_is_refused_with_those_that_there_are(
    tmp_path: Path,
) -> None:
    bare = Perdure({**clean_environment(), "PERDURE_DATA": str(tmp_path / "data")})
    path = tmp_path / "two.json"
    script = {"answers": ["Here."]}
    path.write_text(json.dumps({"first": script, "second": script}))
    done = await bare("run", "Go.", "--model", f"scripted:{path}", "-ojson")
    assert (done.code, done.error["code"]) == (2, "script")
    assert f"write scripted:{path}#first or scripted:{path}#second" in done.error["message"]
    done = await bare("run", "Go.", "--model", f"scripted:{path}.gone", "-ojson")
    assert (done.code, "cannot be read" in done.error["message"]) == (2, True)


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
async def test_model_serve_prints_the_command_that_uses_it_with_no_key(
    perdure: Perdure, script: Callable[..., str]
) -> None:
    path = script({"content": "Served."})
    async with perdure.start("model", "serve", path, "-ojsonl") as server:
        served = json.loads(await wait_for_line(server.stdout, "base_url"))
        [command] = served["commands"]
        _, *words = shlex.split(command)
        done = await perdure(*words, "-ojson")
        await interrupt(server)
    assert (done.code, done.json["model"]) == (0, "openai/default")


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
