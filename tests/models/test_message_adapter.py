"""Messages are adapted to the capabilities of a model."""

import copy
from typing import Any

import pytest

from perdure.models.capabilities import Capabilities
from perdure.models.message_adapter import (
    IMAGE_MOVED,
    IMAGE_OMITTED,
    adapt_messages,
    lacks_thinking,
)
from tests.models.requests import user

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
MARK = {"type": "ephemeral"}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def call(call_id: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "look", "arguments": "{}"}}


def result(call_id: str, content: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "name": "look", "content": content}


THOUGHT: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [call("c1"), call("c2")],
    "reasoning_content": "hm",
    "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}],
}
TALK: list[dict[str, Any]] = [
    {"role": "system", "content": [text("Always."), text("Today.")]},
    {"role": "user", "content": [text("What is this?"), IMAGE]},
    THOUGHT,
    result("c1", [text("one"), IMAGE]),
    result("c2", "two"),
    user("go on"),
]


@pytest.mark.parametrize(
    ("kind", "fields"),
    [("", set()), ("text", {"reasoning_content"}), ("blocks", {"thinking_blocks"})],
)
def test_reasoning_is_sent_back_in_the_models_form(kind: Any, fields: set[str]) -> None:
    answer = adapt_messages(TALK, Capabilities(reasoning=kind))[2]
    assert answer.keys() & {"reasoning_content", "thinking_blocks"} == fields


def test_images_are_sent_only_to_models_with_vision() -> None:
    unseen = adapt_messages(TALK, Capabilities())
    assert unseen[1]["content"] == f"What is this?\n{IMAGE_OMITTED['text']}"
    assert unseen[3]["content"] == f"one\n{IMAGE_OMITTED['text']}"
    seen = adapt_messages(TALK, Capabilities(vision=True, images_in_results=True))
    assert (seen[1], seen[3]) == (TALK[1], TALK[3])


@pytest.mark.parametrize("end", [5, 6])
def test_images_of_results_follow_the_last_result(end: int) -> None:
    moved = adapt_messages(TALK[:end], Capabilities(vision=True))
    assert [each["role"] for each in moved][3:6] == ["tool", "tool", "user"]
    assert moved[3]["content"] == f"one\n{IMAGE_MOVED['text']}"
    assert moved[5]["content"] == [text("[What look showed:]"), IMAGE]
    assert moved[6:] == TALK[5:end]


def test_text_only_parts_are_joined() -> None:
    assert adapt_messages(TALK, Capabilities())[0]["content"] == "Always.\nToday."


def test_cache_marks_are_after_the_system_prompt_and_at_the_end() -> None:
    features = Capabilities(vision=True, images_in_results=True, cache_marks=True)
    system, *_, last = adapt_messages(TALK, features)
    assert system["content"] == [text("Always.", cache_control=MARK), text("Today.")]
    assert last["content"] == [text("go on", cache_control=MARK)]
    *_, last = adapt_messages(TALK[:5], features)
    assert (last["content"], last["cache_control"]) == ("two", MARK)
    system_message, user_message = adapt_messages(
        [{"role": "system", "content": "Be."}, user("")], features
    )
    assert (system_message["content"], user_message["content"]) == (
        [text("Be.", cache_control=MARK)],
        "",
    )


def test_signatures_are_sent_only_to_the_provider_that_made_them() -> None:
    signed = [{"role": "assistant", "tool_calls": [call("c1__thought__abc=")]}]
    signed.append(result("c1__thought__abc=", "one"))
    assert adapt_messages(signed, Capabilities(signed_ids=True)) == signed
    call_message, result_message = adapt_messages(signed, Capabilities())
    assert (call_message["tool_calls"][0]["id"], result_message["tool_call_id"]) == ("c1", "c1")


def test_adapting_messages_leaves_the_originals_unchanged() -> None:
    before = copy.deepcopy(TALK)
    for vision in (True, False):
        for marks in (True, False):
            adapt_messages(TALK, Capabilities(vision=vision, cache_marks=marks))
    assert before == TALK


def test_thinking_is_required_only_after_the_last_user_message() -> None:
    bare = {**THOUGHT, "thinking_blocks": []}
    assert not lacks_thinking(TALK[:5])
    assert lacks_thinking([user("go"), bare, *TALK[3:5]])
    assert not lacks_thinking([user("go"), bare, *TALK[3:]])
