"""The scripted model in process."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from agent.spec import ModelSpec
from events.usage import Usage
from models.model import ContextOverflow, ModelRefused, ModelUnavailable
from models.script import Answer, Failure, Script, ToolCall
from models.scripted import Scripted, load
from tests.models.asking import ask, given, text_in, user

SPEC = ModelSpec(name="scripted:story.json", timeout=30)


async def test_answers_follow_each_other_to_the_end() -> None:
    call = ToolCall(name="look", arguments={"at": "it"})
    model = Scripted(Script(name="s", answers=(Answer(tool_calls=(call,)), Answer(content="ok"))))
    first = await ask(model, SPEC, user("go"))
    (made,) = first.message.tool_calls or ()
    assert (made.id, made.name, made.arguments) == ("call_s_1_1", "look", '{"at": "it"}')
    assert first.finish_reason == "tool_calls"
    shown = [user("go"), given(first), {"role": "tool", "tool_call_id": made.id, "content": "."}]
    second = await ask(model, SPEC, *shown)
    assert (text_in(second), second.finish_reason) == ("ok", "stop")
    assert second.id != first.id
    with pytest.raises(ModelRefused, match=r"has 2 answers .* asked for answer 3: add") as raised:
        await ask(model, SPEC, *shown, given(second))
    assert raised.value.code == "script_exhausted"


async def test_a_retry_gets_the_same_answer() -> None:
    model = Scripted(Script(answers=(Answer(content="one"), Answer(content="two"))))
    answers = [text_in(await ask(model, SPEC)) for _ in range(3)]
    assert answers == ["one"] * 3


@pytest.mark.parametrize(
    ("failure", "kind", "code"),
    [
        (Failure(status=429, retry_after=3), ModelUnavailable, None),
        (Failure(status=429, code="insufficient_quota"), ModelRefused, "quota"),
        (Failure(status=401), ModelRefused, "auth"),
        (Failure(status=400, code="context_length_exceeded"), ContextOverflow, None),
        (Failure(status=500), ModelUnavailable, None),
        (Failure(disconnect=True), ModelUnavailable, None),
        (Failure(malformed=True), ModelUnavailable, None),
    ],
)
async def test_a_failure_is_what_it_is_over_http(failure: Failure, kind: type, code: Any) -> None:
    model = Scripted(Script(answers=(Answer(content="At last.", failures=(failure,)),)))
    with pytest.raises(kind) as raised:
        await ask(model, SPEC)
    assert getattr(raised.value, "code", None) == code
    assert getattr(raised.value, "retry_after", None) == failure.retry_after
    assert text_in(await ask(model, SPEC)) == "At last."


async def test_a_hanging_answer_runs_into_the_timeout_of_the_spec() -> None:
    model = Scripted(Script(answers=(Answer(failures=(Failure(hang=True),)),)))
    with pytest.raises(ModelUnavailable, match=r"no answer in 0.05 s: raise its timeout"):
        await ask(model, SPEC.model_copy(update={"timeout": 0.05}))


async def test_a_long_answer_can_be_cancelled() -> None:
    model = Scripted(Script(answers=(Answer(content="late", delay=3600),)))
    asking = asyncio.create_task(ask(model, SPEC))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_a_paced_answer_grows_word_by_word() -> None:
    model = Scripted(Script(answers=(Answer(content="I am\nhere now", chunk_delay=0.001),)))
    shown: list[str] = []
    await ask(model, SPEC, shown=shown)
    assert shown == ["I ", "I am\n", "I am\nhere ", "I am\nhere now"]


async def test_usage_is_what_the_script_claims_but_for_the_latency() -> None:
    claimed = Usage(prompt_tokens=5, completion_tokens=2, cost=0.25)
    model = Scripted(Script(answers=(Answer(content="x", usage=claimed, delay=0.02),)))
    usage = (await ask(model, SPEC)).usage
    assert usage.model_copy(update={"latency": 0.0}) == claimed
    assert usage.latency >= 0.02


def test_a_name_finds_its_file_and_its_script(tmp_path: Path) -> None:
    path = tmp_path / "story.json"
    path.write_text(json.dumps({"a": {"answers": [{}]}, "b": {"answers": [{}, {}]}}))
    model = load(f"scripted:{path}#b")
    assert len(model.playback.script.answers) == 2
    assert load(f"scripted:{path}#b") is model
    assert load(f"scripted:{path}#a") is not model


def test_a_script_without_a_name_is_the_default(tmp_path: Path) -> None:
    path = tmp_path / "story.json"
    path.write_text('{"answers": [{}]}')
    assert load(f"scripted:{path}").playback.script.name == "default"


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "story.json"
    path.write_text('{"answers": [{}]}')
    before = load(f"scripted:{path}")
    path.write_text('{"answers": [{}, {}]}')
    os.utime(path, ns=(1, 1))
    assert len(load(f"scripted:{path}").playback.script.answers) == 2
    assert len(before.playback.script.answers) == 1


def test_a_bad_name_is_refused_with_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "story.json"
    with pytest.raises(ModelRefused, match=r"story.json cannot be read") as raised:
        load(f"scripted:{path}")
    assert raised.value.code == "model_not_found"
    path.write_text('{"a": {"answers": [{}]}, "b": {"answers": [{}]}}')
    with pytest.raises(ModelRefused, match=r"story.json has no script default; it has: a, b\."):
        load(f"scripted:{path}")
