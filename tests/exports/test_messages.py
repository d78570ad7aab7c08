"""Formats that are messages: the results format, and OpenAI's chat."""

import json
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings

from perdure.events.content import ImageContent, Message, ToolDefinition
from perdure.events.entry import Entry
from perdure.events.messages import SystemPromptEvent
from perdure.exports.openai_chat import IMAGES_NOTE, OPENAI
from perdure.exports.results import RESULTS
from perdure.exports.turns import NO_RESULT
from tests.builders import action, agent, entries, id_of, observation, prompt, text, user
from tests.exports.checks import document, export_files, message_faults
from tests.exports.sample_log import ABOUT, PIXEL, sample_entries
from tests.logs import condensed_logs

any_log = settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)


def messages(made: Any, log: list[Entry]) -> Any:
    body = export_files(made, ABOUT, log).get("", b"")
    fields = json.loads(body) if body else {}
    return fields.get("messages") or []


@any_log
@given(log=condensed_logs)
def test_every_call_has_one_result_in_its_place(log: list[Entry]) -> None:
    assert message_faults(messages(RESULTS, log)) == []
    assert message_faults(messages(OPENAI, log), ends=True) == []


def test_the_checker_of_messages_finds_faults() -> None:
    good = messages(RESULTS, sample_entries())
    assert message_faults(good) == []
    calls = next(nth for nth, item in enumerate(good) if item.get("tool_calls"))
    assert message_faults(good[: calls + 1])
    assert message_faults([*good[: calls + 1], *good[calls + 2 :]])
    assert message_faults([*good, *good])


def test_the_results_format_is_exact() -> None:
    log = entries(
        [
            prompt(),
            user("Find it."),
            action("look", "call_8", "r-1", '{"q": "it"}').model_copy(
                update={"reasoning_content": "Hm."}
            ),
            observation(id_of(2), "look", "found ❤", "call_8"),
            agent("There.", "r-2"),
        ]
    )
    call_message = {
        "content": None,
        "refusal": None,
        "role": "assistant",
        "annotations": None,
        "audio": None,
        "function_call": None,
        "tool_calls": [
            {
                "id": "call_8",
                "function": {"arguments": '{"q": "it"}', "name": "look"},
                "type": "function",
                "index": -1,
            }
        ],
        "reasoning_content": "Hm.",
    }
    plain = {key: value for key, value in call_message.items() if key != "reasoning_content"}
    expected = {
        "messages": [
            {"role": "system", "content": "Be careful."},
            {"role": "user", "content": "Find it."},
            call_message,
            {"role": "tool", "tool_call_id": "call_8", "name": "look", "content": "found ❤"},
            plain | {"content": "There.", "tool_calls": None},
        ]
    }
    body = export_files(RESULTS, ABOUT, log)[""].decode()
    assert body == json.dumps(expected, ensure_ascii=False, indent=2) + "\n"


def test_an_unanswered_call_has_a_result_that_says_so() -> None:
    assert messages(RESULTS, sample_entries())[-1]["content"] == NO_RESULT


def test_an_equal_later_prompt_is_left_out() -> None:
    first, other = prompt(), prompt()
    extra = ToolDefinition(name="new one", description="n", parameters={"type": "object"})
    other = other.model_copy(update={"tools": (*first.tools, extra)})
    third = SystemPromptEvent.model_validate(
        other.model_dump() | {"system_prompt": {"text": "Be quick."}}
    )
    log = entries([user(), first, agent("a", "r-1"), other, agent("b", "r-2"), third, agent("c")])
    conversation = messages(RESULTS, log)
    assert [(item["role"], item["content"]) for item in conversation] == [
        ("system", "Be careful."),
        ("user", "Go on."),
        ("assistant", "a"),
        ("assistant", "b"),
        ("system", "Be quick."),
        ("assistant", "c"),
    ]
    line = document(OPENAI, ABOUT, log)
    assert [message["role"] for message in line["messages"]].count("system") == 1
    assert line["tools"][-1]["function"]["name"] == "new_one"


def test_a_fine_tuning_example_ends_with_the_agent() -> None:
    log = entries([prompt(), user(), agent("Done."), user("Thanks.")])
    assert [message["role"] for message in messages(OPENAI, log)] == ["system", "user", "assistant"]
    assert export_files(OPENAI, ABOUT, log[:2]) == {}


def test_an_interrupted_answer_has_weight_zero() -> None:
    conversation = messages(OPENAI, sample_entries())
    assert [item["content"] for item in conversation if item.get("weight") == 0] == [
        "I was about to"
    ]


def test_an_answer_that_was_cut_off_has_weight_zero() -> None:
    cut = agent("Half an").model_copy(update={"truncated": True})
    *_, first, _, second = messages(OPENAI, entries([user(), cut, user(), agent("Done.")]))
    assert (first["content"], first["weight"]) == ("Half an", 0)
    assert "weight" not in second


def test_the_results_format_has_images_as_the_model_has_them() -> None:
    message = Message(
        role="user", content=(*text("What is it?"), ImageContent(image_urls=("blobs/1",)))
    )
    log = entries([prompt(), user().model_copy(update={"llm_message": message})])
    for vision, told in (
        (True, "[image: blobs/1]"),
        (None, "[image: blobs/1]"),
        (False, "[An image was here; this model is not shown images.]"),
    ):
        about = replace(ABOUT, vision=vision)
        body = json.loads(export_files(RESULTS, about, log)[""])
        assert body["messages"][1]["content"] == f"What is it?\n{told}"


def test_images_of_results_follow_as_a_users_message() -> None:
    conversation = messages(OPENAI, sample_entries())
    at = next(nth for nth, item in enumerate(conversation) if IMAGES_NOTE in json.dumps(item))
    assert (conversation[at - 1]["role"], conversation[at]["role"]) == ("tool", "user")
    assert conversation[at]["content"][1] == {"type": "image_url", "image_url": {"url": PIXEL}}


def test_an_invalid_function_name_is_changed() -> None:
    log = entries([user(), action("fly to/the moon"), agent()])
    [call] = messages(OPENAI, log)[1]["tool_calls"]
    assert call["function"]["name"] == "fly_to_the_moon"
