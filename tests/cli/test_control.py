"""Commands that control a conversation, and their errors."""

import asyncio
import tomllib
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from tests.cli.command import Perdure, model_options, tool_call_answer

Script = Callable[..., str]


@pytest.mark.long
async def test_pending_calls_are_listed_and_answered_by_id(
    perdure: Perdure, script: Script
) -> None:
    both = tool_call_answer("terminal", command="echo one")
    both["tool_calls"] += tool_call_answer("terminal", command="rm -rf two")["tool_calls"]
    path = script(both, {"content": "Done."})
    ran = await perdure("run", "Go.", "--confirm", "always", *model_options(path), "-ojson")
    assert (ran.code, ran.json["status"]) == (4, "waiting_for_confirmation")
    name = ran.json["conversation_id"]
    first_id, second_id = (call["tool_call_id"] for call in ran.json["pending"])
    refusal, status, listed = await asyncio.gather(
        perdure("approve", name), perdure("status", name), perdure("ls", "--limit", "9", "-ojson")
    )
    assert refusal.code == 4
    assert f"{second_id}  risk medium  $ rm -rf two\n" in refusal.out
    assert f"{first_id}  risk " in refusal.out
    assert "--through 5" in refusal.err
    assert f"{second_id} terminal, seq 5, risk MEDIUM, waits for you" in status.out
    [entry] = [item for item in listed.json if item["id"] == name]
    assert [call["tool_call_id"] for call in entry["asks"]] == [first_id, second_id]
    rejected = await perdure("reject", name, "--call", second_id, "--reason", "Keep it.", "-ojson")
    assert (rejected.code, rejected.json["rejected"]) == (0, [second_id])
    approved = await perdure("approve", name, "--through", "99", "-ojson")
    assert (approved.code, approved.json["approved"]) == (0, [first_id])
    watched, again = await asyncio.gather(
        perdure("watch", name, "--until-rest"), perdure("approve", name, "-ojson")
    )
    assert "user        rejected terminal: Keep it.\n" in watched.out
    assert "Done." in watched.out
    assert (again.code, again.error["code"]) == (4, "conflict")


@pytest.mark.long
async def test_limits_can_be_raised_and_notes_are_shown(perdure: Perdure, script: Script) -> None:
    bill = {"usage": {"prompt_tokens": 1000, "cached_tokens": 400, "cost": 0.25}}
    path = script({**tool_call_answer("think", thought="Hm."), **bill}, {"content": "Done."})
    limits = ("--max-iterations", "1", "--deadline", "2h", "--tag", "nightly")
    ran = await perdure("run", "Go on.", *limits, *model_options(path), "-ojson")
    assert (ran.code, ran.json["status"]) == (1, "error")
    name = ran.json["conversation_id"]
    status, wrong, unknown = await asyncio.gather(
        perdure("status", name),
        perdure("configure", name, "limits.max_iteration=2", "-ojson"),
        perdure("note", name, "-ojson"),
    )
    assert "title        Go on.\n" in status.out
    assert "tags         nightly\n" in status.out
    assert "tokens       1,000 in (400 from the cache), 0 out\n" in status.out
    assert (wrong.code, wrong.error["message"]) == (
        2,
        "An agent has no 'limits.max_iteration': did you mean max_iterations?",
    )
    assert (unknown.code, unknown.error["message"]) == (2, "There is nothing to note.")
    raised, noted = await asyncio.gather(
        perdure("configure", name, "limits.max_iterations=2", 'tags=["a", "b"]', "-ojson"),
        perdure("note", name, "--title", "A new title", "--state", "mood=good"),
    )
    assert (raised.code, noted.code, "seq" in raised.json) == (0, 0, True)
    assert raised.json["agent"]["limits"]["max_iterations"] == 2
    assert raised.json["agent"]["tags"] == ["a", "b"]
    done = await perdure("status", name, "-ojson")
    assert (done.json["title"], done.json["tags"]) == ("A new title", ["a", "b"])


@pytest.mark.long
async def test_the_agent_in_force_is_shown_after_a_change_and_can_be_run_again(
    perdure: Perdure, script: Script, tmp_path: Path
) -> None:
    file = tmp_path / "agent.toml"
    path = script({"content": "One."})
    file.write_text(f'model = "scripted:{path}"\ninstructions = """Say\n"one"."""\n')
    options = ("--agent-file", str(file), "-c", "stuck.window=9", "--network")
    ran = await perdure("run", "Go.", *options, "--temperature", "0.5", "-ojson")
    assert ran.code == 0, ran
    name = ran.json["conversation_id"]
    changed, mistyped = await asyncio.gather(
        perdure("configure", name, "limits.max_iterations=7"),
        perdure("configure", name, "model=openai/gpt-4oo", "-ojson"),
    )
    assert "limits.max_iterations = 7\n" in changed.out
    assert (mistyped.code, "There is no model" in mistyped.error["message"]) == (2, True)
    shown, fields = await asyncio.gather(
        perdure("show", name, "--agent"), perdure("show", name, "--agent", "-ojson")
    )
    kept = {name: value for name, value in fields.json.items() if name != "sources"}
    assert tomllib.loads(shown.out) == kept
    assert fields.json["instructions"] == 'Say\n"one".'
    assert (fields.json["network"], fields.json["stuck"]["window"]) == (True, 9)
    assert (fields.json["limits"]["max_iterations"], fields.json["model"]["temperature"]) == (
        7,
        0.5,
    )
    file.write_text(shown.out)
    again = await perdure("run", "Go.", "--agent-file", str(file), "-ojson")
    repeated = await perdure("show", again.json["conversation_id"], "--agent", "-ojson")
    assert {**repeated.json, "sources": None} == {**fields.json, "sources": None}


@pytest.mark.long
async def test_images_are_sent_with_the_first_message_and_with_later_ones(
    perdure: Perdure, script: Script, tmp_path: Path
) -> None:
    first, second = tmp_path / "first.png", tmp_path / "second.gif"
    first.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(200_000))
    second.write_bytes(b"GIF89a" + bytes(200_000))
    path = script({"content": "One."}, {"content": "Two."})
    ran = await perdure("run", "Look.", "--image", f"{first}", *model_options(path), "-ojson")
    assert ran.code == 0, ran
    name = ran.json["conversation_id"]
    sent = await perdure("send", name, "And?", "--image", f"{second}", "--wait", "-ojson")
    assert sent.code == 0, sent
    checked, exported, raw = await asyncio.gather(
        perdure("verify", name),
        perdure("export", name, "--format", "openai"),
        perdure("export", name, "--format", "raw"),
    )
    assert (checked.code, "whole" in checked.out) == (0, True)
    assert "data:image/png;base64," in exported.out
    assert "data:image/gif;base64," in exported.out
    log = tmp_path / "log.jsonl"
    log.write_text(raw.out)
    refused = await perdure("replay", str(log), "-ojson")
    assert (refused.code, "refers to 2 images" in refused.error["message"]) == (2, True)


@pytest.mark.long
async def test_setup_registers_the_search_attributes(configured: Perdure) -> None:
    nowhere = configured.with_env(TEMPORAL_NAMESPACE=f"no-{uuid4()}")
    set_up, refused = await asyncio.gather(
        configured("setup", "temporal", "-ojson"), nowhere("setup", "temporal", "-ojson")
    )
    assert (set_up.code, set_up.json["registered"]) == (0, [])
    assert (refused.code, refused.error["code"]) == (6, "unreachable")
