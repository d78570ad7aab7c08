"""Messages made to fit a model."""

import copy
from typing import Any

import pytest

from models.features import Features
from models.fitting import MOVED, UNSEEN, fitted, lacks_thinking
from tests.models.asking import user

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
MARK = {"type": "ephemeral"}


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **more}


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
    ("kind", "kept"),
    [("", set()), ("text", {"reasoning_content"}), ("blocks", {"thinking_blocks"})],
)
def test_reasoning_goes_back_as_it_is_wanted(kind: Any, kept: set[str]) -> None:
    answer = fitted(TALK, Features(reasoning=kind))[2]
    assert answer.keys() & {"reasoning_content", "thinking_blocks"} == kept


def test_images_are_shown_to_those_that_see() -> None:
    unseen = fitted(TALK, Features())
    assert unseen[1]["content"] == f"What is this?\n{UNSEEN['text']}"
    assert unseen[3]["content"] == f"one\n{UNSEEN['text']}"
    seen = fitted(TALK, Features(vision=True, images_in_results=True))
    assert (seen[1], seen[3]) == (TALK[1], TALK[3])


@pytest.mark.parametrize("end", [5, 6])
def test_images_of_results_follow_the_whole_batch(end: int) -> None:
    moved = fitted(TALK[:end], Features(vision=True))
    assert [each["role"] for each in moved][3:6] == ["tool", "tool", "user"]
    assert moved[3]["content"] == f"one\n{MOVED['text']}"
    assert moved[5]["content"] == [text("[What look showed:]"), IMAGE]
    assert moved[6:] == TALK[5:end]


def test_parts_that_are_all_text_are_joined() -> None:
    assert fitted(TALK, Features())[0]["content"] == "Always.\nToday."


def test_the_cache_is_marked_after_what_never_changes_and_at_the_end() -> None:
    features = Features(vision=True, images_in_results=True, cache_marks=True)
    system, *_, last = fitted(TALK, features)
    assert system["content"] == [text("Always.", cache_control=MARK), text("Today.")]
    assert last["content"] == [text("go on", cache_control=MARK)]
    *_, last = fitted(TALK[:5], features)
    assert (last["content"], last["cache_control"]) == ("two", MARK)
    one, other = fitted([{"role": "system", "content": "Be."}, user("")], features)
    assert (one["content"], other["content"]) == ([text("Be.", cache_control=MARK)], "")


def test_signatures_stay_with_those_who_signed() -> None:
    signed = [{"role": "assistant", "tool_calls": [call("c1__thought__abc=")]}]
    signed.append(result("c1__thought__abc=", "one"))
    assert fitted(signed, Features(signed_ids=True)) == signed
    asked, answered = fitted(signed, Features())
    assert (asked["tool_calls"][0]["id"], answered["tool_call_id"]) == ("c1", "c1")


def test_what_was_given_stays_as_it_was() -> None:
    before = copy.deepcopy(TALK)
    for vision in (True, False):
        for marks in (True, False):
            fitted(TALK, Features(vision=vision, cache_marks=marks))
    assert before == TALK


def test_thinking_is_missed_only_since_the_user_spoke() -> None:
    bare = {**THOUGHT, "thinking_blocks": []}
    assert not lacks_thinking(TALK[:5])
    assert lacks_thinking([user("go"), bare, *TALK[3:5]])
    assert not lacks_thinking([user("go"), bare, *TALK[3:]])
