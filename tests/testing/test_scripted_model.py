"""The scripted model in process."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from perdure.agent.spec import ModelSpec
from perdure.events.usage import Usage
from perdure.models.model import (
    ContextOverflow,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    Purpose,
    Request,
)
from perdure.testing.script import Script, ScriptedAnswer, ScriptedFailure, ScriptedToolCall
from perdure.testing.scripted_model import ScriptedModel, load
from tests.models.requests import ask, text_in, to_message, user

SPEC = ModelSpec(name="scripted:story.json", timeout=30)


async def test_answers_follow_each_other_to_the_end() -> None:
    call = ScriptedToolCall(name="look", arguments={"at": "it"})
    model = ScriptedModel(
        Script(name="s", answers=(ScriptedAnswer(tool_calls=(call,)), ScriptedAnswer(content="ok")))
    )
    first = await ask(model, SPEC, user("go"))
    (made,) = first.message.tool_calls or ()
    assert (made.id, made.name, made.arguments) == ("call_s_1_1", "look", '{"at": "it"}')
    assert first.finish_reason == "tool_calls"
    messages = [
        user("go"),
        to_message(first),
        {"role": "tool", "tool_call_id": made.id, "content": "."},
    ]
    second = await ask(model, SPEC, *messages)
    assert (text_in(second), second.finish_reason) == ("ok", "stop")
    assert second.id != first.id
    with pytest.raises(ModelRefused, match=r"has 2 answers .* asked for answer 3: add") as raised:
        await ask(model, SPEC, *messages, to_message(second))
    assert raised.value.code == "script_exhausted"


async def test_a_retry_gets_the_same_answer() -> None:
    model = ScriptedModel(
        Script(answers=(ScriptedAnswer(content="one"), ScriptedAnswer(content="two")))
    )
    answers = [text_in(await ask(model, SPEC)) for _ in range(3)]
    assert answers == ["one"] * 3


@pytest.mark.parametrize(
    ("failure", "kind", "code"),
    [
        (ScriptedFailure(status=429, retry_after=3), ModelUnavailable, "rate_limit"),
        (ScriptedFailure(status=429, code="insufficient_quota"), ModelRefused, "quota"),
        (ScriptedFailure(status=401), ModelRefused, "auth"),
        (
            ScriptedFailure(status=400, code="context_length_exceeded"),
            ContextOverflow,
            "context_overflow",
        ),
        (ScriptedFailure(status=500), ModelUnavailable, "overloaded"),
        (ScriptedFailure(disconnect=True), ModelUnavailable, "connection"),
        (ScriptedFailure(status=503, partial=True), ModelUnavailable, "overloaded"),
        (ScriptedFailure(malformed=True), ModelUnavailable, "malformed"),
    ],
)
async def test_a_failure_raises_the_same_error_as_over_http(
    failure: ScriptedFailure, kind: type[ModelError], code: str
) -> None:
    model = ScriptedModel(
        Script(answers=(ScriptedAnswer(content="At last.", failures=(failure,)),))
    )
    with pytest.raises(kind) as raised:
        await ask(model, SPEC)
    assert raised.value.code == code
    assert getattr(raised.value, "retry_after", None) == failure.retry_after
    assert text_in(await ask(model, SPEC)) == "At last."


async def test_a_hanging_answer_runs_into_the_timeout_of_the_spec() -> None:
    model = ScriptedModel(Script(answers=(ScriptedAnswer(failures=(ScriptedFailure(hang=True),)),)))
    with pytest.raises(ModelUnavailable, match=r"no answer in 0.05 s: raise its timeout"):
        await ask(model, SPEC.model_copy(update={"timeout": 0.05}))


async def test_a_slow_answer_can_be_cancelled() -> None:
    model = ScriptedModel(Script(answers=(ScriptedAnswer(content="late", delay=3600),)))
    asking = asyncio.create_task(ask(model, SPEC))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_a_paced_answer_grows_word_by_word() -> None:
    model = ScriptedModel(
        Script(answers=(ScriptedAnswer(content="I am\nhere now", chunk_delay=0.001),))
    )
    previews: list[str] = []
    await ask(model, SPEC, texts=previews)
    assert previews == ["I ", "I am\n", "I am\nhere ", "I am\nhere now"]


async def test_usage_is_the_scripts_except_for_the_latency() -> None:
    claimed = Usage(prompt_tokens=5, completion_tokens=2, cost=0.25)
    model = ScriptedModel(Script(answers=(ScriptedAnswer(content="x", usage=claimed, delay=0.02),)))
    usage = (await ask(model, SPEC)).usage
    assert usage.model_copy(update={"latency": 0.0}) == claimed
    assert usage.latency >= 0.02


def test_a_models_name_selects_file_and_script(tmp_path: Path) -> None:
    path = tmp_path / "story.json"
    path.write_text(json.dumps({"a": {"answers": [{}]}, "b": {"answers": [{}, {}]}}))
    model = load(f"scripted:{path}#b")
    assert len(model.player.script.answers) == 2
    assert load(f"scripted:{path}#b") is model
    assert load(f"scripted:{path}#a") is not model


def test_a_script_without_a_name_is_the_default(tmp_path: Path) -> None:
    path = tmp_path / "story.json"
    path.write_text('{"answers": [{}]}')
    assert load(f"scripted:{path}").player.script.name == "default"


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "story.json"
    path.write_text('{"answers": [{}]}')
    before = load(f"scripted:{path}")
    path.write_text('{"answers": [{}, {}]}')
    os.utime(path, ns=(1, 1))
    assert len(load(f"scripted:{path}").player.script.answers) == 2
    assert len(before.player.script.answers) == 1


def test_an_invalid_name_is_refused_with_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "story.json"
    with pytest.raises(ModelRefused, match=r"story.json cannot be read") as raised:
        load(f"scripted:{path}")
    assert raised.value.code == "model_not_found"
    path.write_text('{"a": {"answers": [{}]}, "b": {"answers": [{}]}}')
    choices = rf"write scripted:{path}#a or scripted:{path}#b\."
    with pytest.raises(ModelRefused, match=f"story.json has several scripts: {choices}"):
        load(f"scripted:{path}")
    with pytest.raises(ModelRefused, match=f"story.json has no script 'c': {choices}"):
        load(f"scripted:{path}#c")
    path.write_text('{"only": {"answers": [{}]}}')
    assert load(f"scripted:{path}").player.script.name == "only"


async def ask_for_text(
    model: ScriptedModel,
    *messages: dict[str, Any],
    purpose: Purpose = "",
    number: int | None = None,
) -> str:
    request = Request(SPEC, messages or (user("go"),), purpose=purpose, number=number)
    return text_in(await model.complete(request, lambda _: None))


async def test_the_number_selects_the_answer_after_condensation() -> None:
    model = ScriptedModel(Script(answers=("one", "two", "three")))
    assert await ask_for_text(model, user("SUMMARY of 9 messages"), number=2) == "three"
    assert await ask_for_text(model, user("SUMMARY of 9 messages"), number=2) == "three", (
        "on every attempt"
    )
    with pytest.raises(ModelRefused, match="asked for answer 4"):
        await ask_for_text(model, number=3)


async def test_other_purposes_have_their_own_answers() -> None:
    model = ScriptedModel(
        Script(answers=("one",), summaries=("first", "then"), titles=("A story",), delegates=("d",))
    )
    assert await ask_for_text(model, purpose="condense") == "first"
    assert [await ask_for_text(model, purpose="condense", number=at) for at in (1, 5)] == [
        "then"
    ] * 2
    assert await ask_for_text(model, purpose="title", number=3) == "A story"
    assert await ask_for_text(model, purpose="delegate", number=0) == "d"
    assert await ask_for_text(model, purpose="ask") == "ANSWER of 1 messages"
    assert await ask_for_text(model) == "one", "and none of them counts as an answer"


async def test_other_purposes_without_answers_get_default_texts() -> None:
    model = ScriptedModel(Script(answers=("one",)))
    assert (
        await ask_for_text(model, user("a"), user("b"), purpose="condense")
        == "SUMMARY of 2 messages"
    )
    assert await ask_for_text(model, purpose="title") == "TITLE of 1 messages"
    assert await ask_for_text(model, purpose="delegate") == "one"


async def test_the_last_answer_may_repeat() -> None:
    call = ScriptedToolCall(name="look")
    model = ScriptedModel(Script(answers=("one", ScriptedAnswer(tool_calls=(call,))), repeat=True))
    ids = set()
    for number in (1, 2, 50):
        answer = await model.complete(Request(SPEC, [user("go")], number=number), lambda _: None)
        ids |= {made.id for made in answer.message.tool_calls or ()}
    assert ids == {"call_default_2_1", "call_default_3_1", "call_default_51_1"}


async def test_a_script_may_have_a_context_window() -> None:
    model = ScriptedModel(Script(answers=("one",), max_messages=2))
    assert await ask_for_text(model, user("a"), user("b")) == "one"
    for _ in range(2):
        with pytest.raises(ContextOverflow, match="holds 2 messages and was given 3"):
            await ask_for_text(model, user("a"), user("b"), user("c"))
