"""Answers are accumulated from chunks."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.events.content import RedactedThinkingBlock, ThinkingBlock
from perdure.models.stream_accumulator import StreamAccumulator, parse_usage
from tests.models.requests import calm

names = st.text("abc_", min_size=1, max_size=6)
answers = st.fixed_dictionaries(
    {
        "content": st.text(max_size=30),
        "reasoning": st.text(max_size=30),
        "calls": st.lists(st.tuples(names, st.text(min_size=1, max_size=30)), max_size=4),
    }
)


def assembled(*deltas: dict[str, Any], finish: str | None = "stop") -> StreamAccumulator:
    answer = StreamAccumulator()
    for delta in deltas:
        answer.add({"id": "r", "choices": [{"delta": delta}]})
    answer.add({"choices": [{"delta": {}, "finish_reason": finish}]})
    return answer


def pieces(text: str, data: st.DataObject) -> list[str]:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    edges = [0, *cuts, len(text)]
    return [text[start:end] for start, end in itertools.pairwise(edges)]


@calm
@given(answers, st.sampled_from(["reasoning_content", "reasoning"]), st.data())
def test_an_answer_does_not_depend_on_its_chunks(
    answer: dict[str, Any], place: str, data: st.DataObject
) -> None:
    deltas: list[dict[str, Any]] = [{place: part} for part in pieces(answer["reasoning"], data)]
    deltas += [{"content": part} for part in pieces(answer["content"], data)]
    for index, (name, arguments) in enumerate(answer["calls"]):
        deltas.append(
            {"tool_calls": [{"index": index, "id": f"c{index}", "function": {"name": name}}]}
        )
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": part}}]}
            for part in pieces(arguments, data)
        ]
    message = assembled(*deltas).message()
    assert (
        "".join(part.text for part in message.content if part.type == "text") == answer["content"]
    )
    # Some servers send a line break where there is no reasoning.
    reasoning = answer["reasoning"] if answer["reasoning"].strip() else ""
    assert (message.reasoning_content or "") == reasoning
    assert [(call.name, call.arguments) for call in message.tool_calls or ()] == answer["calls"]


def test_streamed_calls_may_be_interleaved() -> None:
    start = [
        {"index": i, "id": f"c{i}", "function": {"name": "f", "arguments": ""}} for i in (0, 1)
    ]
    grow = [{"index": i, "function": {"arguments": f"{i}"}} for i in (1, 0)]
    message = assembled({"tool_calls": start}, {"tool_calls": grow}, {"tool_calls": grow}).message()
    assert [call.arguments for call in message.tool_calls or ()] == ["00", "11"]


def test_whole_calls_with_the_same_index_stay_separate() -> None:
    calls = [
        {"index": 0, "id": f"c{i}", "function": {"name": "f", "arguments": f'{{"a": {i}}}'}}
        for i in (1, 2)
    ]
    message = assembled({"tool_calls": calls[:1]}, {"tool_calls": calls[1:]}).message()
    assert [call.arguments for call in message.tool_calls or ()] == ['{"a": 1}', '{"a": 2}']


def test_a_server_may_repeat_name_and_id_or_leave_out_the_index() -> None:
    first = {"id": "c", "function": {"name": "f", "arguments": "{"}}
    again = {"id": "c", "function": {"name": "f", "arguments": "}"}}
    (call,) = assembled({"tool_calls": [first]}, {"tool_calls": [again]}).message().tool_calls or ()
    assert (call.id, call.name, call.arguments) == ("c", "f", "{}")


@pytest.mark.parametrize("arguments", [None, "", {}])
def test_a_call_without_arguments_has_an_empty_object(arguments: Any) -> None:
    piece = {"index": 0, "id": "c", "function": {"name": "f", "arguments": arguments}}
    (call,) = assembled({"tool_calls": [piece]}).message().tool_calls or ()
    assert json.loads(call.arguments) == {}


@calm
@given(st.lists(st.sampled_from(["", "a", "b", "old"]), min_size=1, max_size=6))
def test_tool_call_ids_are_unique_and_new(ids: list[str]) -> None:
    calls = [{"index": at, "id": id_, "function": {"name": "f"}} for at, id_ in enumerate(ids)]
    message = assembled({"tool_calls": calls}).message(used_ids={"old"})
    given_ids = [call.id for call in message.tool_calls or ()]
    assert len(set(given_ids)) == len(ids)
    assert not {"", "old"} & set(given_ids)
    assert {"a", "b"} & set(ids) <= set(given_ids)


def test_reasoning_in_two_fields_is_counted_once() -> None:
    delta = {
        "reasoning_content": "hm",
        "reasoning": "hm",
        "provider_specific_fields": {"reasoning_content": "hm"},
    }
    assert assembled(delta).message().reasoning_content == "hm"


def test_reasoning_may_be_among_the_providers_own_fields() -> None:
    delta = {"provider_specific_fields": {"reasoning": "hm"}}
    assert assembled(delta, delta).message().reasoning_content == "hmhm"


@pytest.mark.parametrize("blanks", [" ", "\n", " \n\t"])
def test_reasoning_of_blanks_alone_is_none(blanks: str) -> None:
    answer = assembled({"reasoning_content": blanks, "content": "Hi."})
    assert answer.message().reasoning_content is None


def test_blanks_between_reasoning_are_kept() -> None:
    deltas = ({"reasoning_content": text} for text in ("Hm.", " ", "So."))
    assert assembled(*deltas).message().reasoning_content == "Hm. So."


def test_thinking_blocks_end_with_their_signatures() -> None:
    message = assembled(
        {"thinking_blocks": [{"type": "thinking", "thinking": "a"}], "reasoning_content": "a"},
        {"thinking_blocks": [{"type": "thinking", "thinking": "b"}], "reasoning_content": "b"},
        {"thinking_blocks": [{"type": "thinking", "thinking": "", "signature": "s1"}]},
        {
            "provider_specific_fields": {
                "thinking_blocks": [{"type": "redacted_thinking", "data": "x"}]
            }
        },
        {"thinking_blocks": [{"type": "thinking", "thinking": "c", "signature": "s2"}]},
        {"thinking_blocks": [{"type": "thinking", "thinking": "never signed"}]},
    ).message()
    assert message.reasoning_content == "ab"
    assert message.thinking_blocks == (
        ThinkingBlock(thinking="ab", signature="s1"),
        RedactedThinkingBlock(data="x"),
        ThinkingBlock(thinking="c", signature="s2"),
    )


def test_content_may_come_in_typed_parts() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "hello"},
    ]
    message = assembled({"content": parts}).message()
    assert (message.reasoning_content, message.content[0].model_dump()["text"]) == ("hm", "hello")


def test_a_whole_completion_is_one_chunk() -> None:
    answer = StreamAccumulator()
    message = {"role": "assistant", "content": "hi", "tool_calls": None}
    answer.add({"id": "r", "choices": [{"message": message, "finish_reason": "length"}]})
    assert (answer.text, answer.finish_reason, answer.has_choice) == ("hi", "length", True)


@pytest.mark.parametrize(
    "tokens",
    [
        {"prompt_tokens_details": {"cache_write_tokens": 7}},
        {"prompt_tokens_details": {"cache_creation_tokens": 7}},
        {"cache_creation_input_tokens": 7},
    ],
)
def test_cache_write_tokens_are_found_in_every_providers_field(tokens: dict[str, Any]) -> None:
    assert parse_usage({"prompt_tokens": 9, **tokens}).cache_write_tokens == 7


@pytest.mark.parametrize(
    ("tokens", "cached"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 7}}, 7),
        ({"cache_read_input_tokens": 7}, 7),
        ({"prompt_cache_hit_tokens": 7}, 7),
        ({"prompt_tokens_details": None}, 0),
        ({}, 0),
    ],
)
def test_cached_tokens_are_found_in_every_providers_field(
    tokens: dict[str, Any], cached: int
) -> None:
    assert parse_usage({"prompt_tokens": 9, **tokens}).cached_tokens == cached
