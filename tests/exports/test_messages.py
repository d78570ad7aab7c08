"""Formats that are messages: the results format, mcpbench, and OpenAI's chat."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings

from events.content import ToolDefinition
from events.entry import Entry
from events.messages import SystemPromptEvent
from exports.mcpbench import MCPBENCH
from exports.openai_chat import OPENAI, PICTURES
from exports.results import RESULTS
from exports.turns import NO_RESULT
from tests.builders import action, agent, entries, id_of, observation, prompt, user
from tests.exports.checks import document, exported, faults_of_messages
from tests.exports.story import ABOUT, PIXEL, story
from tests.logs import condensed_logs

any_log = settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)


def messages(made: Any, log: list[Entry]) -> Any:
    body = exported(made, ABOUT, log).get("", b"")
    told = json.loads(body) if body else {}
    return told.get("messages") or told.get("logs") or []


@any_log
@given(log=condensed_logs)
def test_every_call_has_one_result_in_its_place(log: list[Entry]) -> None:
    assert faults_of_messages(messages(RESULTS, log)) == []
    assert faults_of_messages(messages(OPENAI, log), ends=True) == []


def test_a_check_finds_what_it_looks_for() -> None:
    good = messages(RESULTS, story())
    assert faults_of_messages(good) == []
    calls = next(nth for nth, one in enumerate(good) if one.get("tool_calls"))
    assert faults_of_messages(good[: calls + 1])
    assert faults_of_messages([*good[: calls + 1], *good[calls + 2 :]])
    assert faults_of_messages([*good, *good])


def test_the_results_format_is_kept_to_the_letter() -> None:
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
    asked = {
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
    plain = {key: value for key, value in asked.items() if key != "reasoning_content"}
    expected = {
        "messages": [
            {"role": "system", "content": "Be careful."},
            {"role": "user", "content": "Find it."},
            asked,
            {"role": "tool", "tool_call_id": "call_8", "name": "look", "content": "found ❤"},
            plain | {"content": "There.", "tool_calls": None},
        ]
    }
    body = exported(RESULTS, ABOUT, log)[""].decode()
    assert body == json.dumps(expected, ensure_ascii=False, indent=2) + "\n"


def test_a_call_that_was_never_answered_says_so() -> None:
    assert messages(RESULTS, story())[-1]["content"] == NO_RESULT


def test_a_later_prompt_that_says_the_same_is_not_told_again() -> None:
    first, other = prompt(), prompt()
    extra = ToolDefinition(name="new one", description="n", parameters={"type": "object"})
    other = other.model_copy(update={"tools": (*first.tools, extra)})
    third = SystemPromptEvent.model_validate(
        other.model_dump() | {"system_prompt": {"text": "Be quick."}}
    )
    log = entries([user(), first, agent("a", "r-1"), other, agent("b", "r-2"), third, agent("c")])
    told = messages(RESULTS, log)
    assert [(one["role"], one["content"]) for one in told] == [
        ("system", "Be careful."),
        ("user", "Go on."),
        ("assistant", "a"),
        ("assistant", "b"),
        ("system", "Be quick."),
        ("assistant", "c"),
    ]
    line = document(OPENAI, ABOUT, log)
    assert [one["role"] for one in line["messages"]].count("system") == 1
    assert line["tools"][-1]["function"]["name"] == "new_one"


def test_mcpbench_counts_what_happened_and_tells_it() -> None:
    told = document(MCPBENCH, ABOUT, story())
    assert told["stats"] == {
        "interaction_turns": 3,
        "tool_calls": 7,
        "errors": 2,
        "condensations": 1,
    }
    assert {one["role"] for one in told["logs"]} == {
        "user",
        "environment",
        "assistant",
        "tool",
        "agent",
    }
    calls = [call for one in told["logs"] for call in one.get("tool_calls", ())]
    results = [one["tool_call_id"] for one in told["logs"] if one["role"] == "tool"]
    assert [call["id"] for call in calls] == results


def test_an_example_to_learn_from_ends_with_the_agent() -> None:
    log = entries([prompt(), user(), agent("Done."), user("Thanks.")])
    assert [one["role"] for one in messages(OPENAI, log)] == ["system", "user", "assistant"]
    assert exported(OPENAI, ABOUT, log[:2]) == {}


def test_what_was_cut_off_is_not_to_be_learned() -> None:
    told = messages(OPENAI, story())
    assert [one["content"] for one in told if one.get("weight") == 0] == ["I was about to"]


def test_images_of_results_follow_them_as_the_users() -> None:
    told = messages(OPENAI, story())
    at = next(nth for nth, one in enumerate(told) if PICTURES in json.dumps(one))
    assert (told[at - 1]["role"], told[at]["role"]) == ("tool", "user")
    assert told[at]["content"][1] == {"type": "image_url", "image_url": {"url": PIXEL}}


def test_a_name_that_no_function_may_have_is_changed() -> None:
    log = entries([user(), action("fly to/the moon"), agent()])
    [call] = messages(OPENAI, log)[1]["tool_calls"]
    assert call["function"]["name"] == "fly_to_the_moon"
