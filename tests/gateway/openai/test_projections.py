"""Turns as objects of OpenAI: tables of parts, and what follows from them."""

from typing import Any

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from perdure.agent.loop.start import PendingCall
from perdure.agent.loop.status import TRUNCATED_REASON, Status
from perdure.events.usage import Usage
from perdure.gateway.openai.projections.chat import ChatHead, ChatProjection
from perdure.gateway.openai.projections.ids import (
    ResponseId,
    format_conversation_id,
    parse_conversation_id,
    parse_response_id,
)
from perdure.gateway.openai.projections.items import ToolItems
from perdure.gateway.openai.projections.response import Event, Head, ResponseProjection
from perdure.gateway.turns.parts import (
    Asked,
    Called,
    Ended,
    Failed,
    Part,
    Reasoning,
    Returned,
    Text,
)

HEAD = Head("resp_1", 1.0, "coder", "conv_1")
EVENT: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)

SAID = [Text("a", "It "), Text("a", "is 5.", last=True, final=True, whole="It is 5.")]
SAID_FIRST = [Text("a", "I add.", last=True, whole="I add.")]
THOUGHT = Reasoning("a", "Hm.")
CALLED = Called("a", "c", "add", '{"a":1}')
OTHER = Called("a", "d", "sub", "{}")
RETURNED = Returned("c", "add", "5")
FAILED = Returned("c", "add", "No.", is_error=True)
MAY_WAIT = Called("a", "c", "add", '{"a":1}', "possible")
APPROVED = Called("a", "c", "add", '{"a":1}', "answered")
ASKED = Asked((PendingCall(seq=5, tool_name="add", tool_call_id="c", risk="HIGH", asks=True),))

MESSAGE = [
    *("output_item.added 0", "content_part.added 0", "output_text.delta 0"),
    *("output_text.done 0", "content_part.done 0", "output_item.done 0"),
]
CALL = [
    *("output_item.added 0", "mcp_call.in_progress 0"),
    *("mcp_call_arguments.delta 0", "mcp_call_arguments.done 0"),
]


def end(status: Status = "finished", reason: str | None = None) -> Ended:
    return Ended(status, reason, Usage(prompt_tokens=7, completion_tokens=3), 9)


STREAMS: dict[str, tuple[list[Part], list[str], str]] = {
    "words": (
        [*SAID, end()],
        [*MESSAGE[:3], "output_text.delta 0", *MESSAGE[3:], "completed"],
        "completed",
    ),
    "reasoning": (
        [THOUGHT, end()],
        [
            *("output_item.added 0", "reasoning_text.delta 0", "reasoning_text.done 0"),
            *("output_item.done 0", "completed"),
        ],
        "completed",
    ),
    "a call": (
        [CALLED, RETURNED, end()],
        [*CALL, "mcp_call.completed 0", "output_item.done 0", "completed"],
        "completed",
    ),
    "a question": (
        [CALLED, RETURNED, *SAID, end("waiting_for_answer")],
        [
            *(*CALL, "mcp_call.completed 0", "output_item.done 0"),
            *(event.replace(" 0", " 1") for event in [*MESSAGE[:3], "output_text.delta 0"]),
            *(event.replace(" 0", " 1") for event in MESSAGE[3:]),
            "completed",
        ],
        "completed",
    ),
    "a call that fails": (
        [CALLED, FAILED, end()],
        [*CALL, "mcp_call.failed 0", "output_item.done 0", "completed"],
        "completed",
    ),
    "calls side by side": (
        [CALLED, OTHER, Returned("d", "sub", "3"), RETURNED, end()],
        [
            *(*CALL, *(name.replace(" 0", " 1") for name in CALL)),
            *("mcp_call.completed 1", "output_item.done 1"),
            *("mcp_call.completed 0", "output_item.done 0", "completed"),
        ],
        "completed",
    ),
    "a call without a result": (
        [CALLED, end("idle", "interrupted by the user")],
        [*CALL, "mcp_call.failed 0", "output_item.done 0", "incomplete"],
        "cancelled",
    ),
    "a call that waits": (
        [MAY_WAIT, ASKED, end("waiting_for_confirmation")],
        ["output_item.added 0", "output_item.done 0", "completed"],
        "completed",
    ),
    "a call that might have waited": (
        [MAY_WAIT, RETURNED, end()],
        [*CALL, "mcp_call.completed 0", "output_item.done 0", "completed"],
        "completed",
    ),
    "a call that a person has approved": (
        [APPROVED, RETURNED, end()],
        [*CALL, "mcp_call.completed 0", "output_item.done 0", "completed"],
        "completed",
    ),
    "a result of nothing": ([RETURNED, end()], ["completed"], "completed"),
    "a failure": ([Failed("auth", "No key."), end("error")], ["failed"], "failed"),
    "an end with an error": ([end("stuck", "in circles")], ["failed"], "failed"),
    "an answer that was cut off": ([end(reason=TRUNCATED_REASON)], ["incomplete"], "incomplete"),
    "a pause": ([end("paused")], ["incomplete"], "incomplete"),
    "words that nothing follows": (
        [Text("a", "It "), Text("a", "", last=True, whole="It "), end("idle")],
        [*MESSAGE, "incomplete"],
        "cancelled",
    ),
}


def project(
    parts: list[Part], tool_items: ToolItems = "mcp_call"
) -> tuple[list[Event], dict[str, Any]]:
    projection = ResponseProjection(HEAD, tool_items)
    events = projection.begin()
    for part in parts:
        events += projection.take(part)
    return events, projection.response()


@pytest.mark.parametrize("name", STREAMS)
def test_the_events_of_a_response_follow_from_the_parts(name: str) -> None:
    parts, expected, status = STREAMS[name]
    events, response = project(parts)
    names = [event["type"].removeprefix("response.") for event in events]
    indexes = [event.get("output_index", "") for event in events]
    found = [f"{kind} {index}".strip() for kind, index in zip(names, indexes, strict=True)]
    assert found == ["created", "in_progress", *expected]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert (response["status"], events[-1]["response"]) == (status, response)
    was_cut = name == "an answer that was cut off"
    assert response["incomplete_details"] == ({"reason": "max_output_tokens"} if was_cut else None)


@pytest.mark.parametrize("tool_items", ["mcp_call", "function_call"])
@pytest.mark.parametrize("name", STREAMS)
def test_the_items_of_a_response_are_those_that_its_stream_ends(
    name: str, tool_items: ToolItems
) -> None:
    events, response = project(STREAMS[name][0], tool_items)
    added, done = (
        {event["output_index"]: event["item"] for event in events if event["type"].endswith(kind)}
        for kind in ("output_item.added", "output_item.done")
    )
    assert [done[index] for index in sorted(done)] == response["output"]
    assert {index: item["id"] for index, item in added.items()} == {
        index: item["id"] for index, item in done.items()
    }
    for event in events:
        if "item_id" in event:
            assert event["item_id"] == added[event["output_index"]]["id"]


@pytest.mark.parametrize("name", STREAMS)
def test_events_and_responses_have_the_clients_own_types(name: str) -> None:
    events, response = project([part for part in STREAMS[name][0] if part is not FAILED])
    for event in events:
        EVENT.validate_python(event)
    Response.model_validate(response)


def test_an_item_says_what_happened() -> None:
    _, response = project([*SAID_FIRST, THOUGHT, CALLED, FAILED, APPROVED, RETURNED, *SAID, end()])
    said, thought, failed, approved, answer = response["output"]
    assert (said["phase"], answer["phase"]) == ("commentary", "final_answer")
    assert thought["content"] == [{"type": "reasoning_text", "text": "Hm."}]
    assert failed["error"] == {
        "type": "mcp_tool_execution_error",
        "content": [{"type": "text", "text": "No."}],
    }
    assert (failed["status"], failed["output"], failed["approval_request_id"]) == (
        *("failed", None, None),
    )
    assert (approved["output"], approved["approval_request_id"]) == ("5", "mcpr_c")
    assert response["usage"]["total_tokens"] == 10


def test_the_id_of_an_item_is_that_of_its_step_whatever_it_says() -> None:
    [first], [second] = (project([*said, end()])[1]["output"] for said in (SAID, SAID_FIRST))
    assert first["id"] == second["id"] != project([THOUGHT, end()])[1]["output"][0]["id"]


def test_the_text_of_an_item_is_that_of_the_log_where_the_model_has_begun_anew() -> None:
    anew = [Text("a", "Four "), Text("a", "\nIt is 5.", last=True, final=True, whole="It is 5.")]
    events, response = project([*anew, end()])
    assert response["output"][0]["content"][0]["text"] == "It is 5."
    [done] = [event for event in events if event["type"] == "response.output_text.done"]
    assert done["text"] == "It is 5."


def test_a_rate_limit_has_openais_code() -> None:
    _, response = project([Failed("rate_limit", "Wait."), end("error")])
    assert response["error"] == {"code": "rate_limit_exceeded", "message": "rate_limit: Wait."}


def test_tools_as_function_calls_have_their_outputs_behind_them() -> None:
    _, response = project([CALLED, FAILED, end()], "function_call")
    call, output = response["output"]
    assert (call["type"], call["call_id"], call["status"]) == ("function_call", "c", "completed")
    assert (output["type"], output["call_id"], output["output"]) == (
        *("function_call_output", "c", [{"type": "input_text", "text": "No."}]),
    )


CHAT_HEAD = ChatHead("chatcmpl-1", 1, "coder", "https://example.org/conversations/1")

CHATS: dict[str, tuple[list[Part], str, str, str]] = {
    "words": ([*SAID, end()], "It is 5.", "", "stop"),
    "words before and after a call": (
        [*SAID_FIRST, CALLED, RETURNED, Text("b", "5.", last=True, final=True), end()],
        *("I add.\n\n5.", '→ add {"a":1}\n\n← 5', "stop"),
    ),
    "reasoning": ([THOUGHT, *SAID, end()], "It is 5.", "Hm.", "stop"),
    "a long result": (
        [CALLED, Returned("c", "add", "x" * 501), end()],
        *("", '→ add {"a":1}\n\n← ' + "x" * 499 + "…", "stop"),
    ),
    "a call that waits": (
        [*SAID_FIRST, MAY_WAIT, ASKED, end("waiting_for_confirmation")],
        'I add.\n\nThis waits for your approval:\n\n- add {"a":1}\n\n'
        "https://example.org/conversations/1",
        *('→ add {"a":1}', "stop"),
    ),
    "an answer that was cut off": ([*SAID, end(reason=TRUNCATED_REASON)], "It is 5.", "", "length"),
}


@pytest.mark.parametrize("name", CHATS)
def test_a_chat_is_the_same_streamed_and_whole(name: str) -> None:
    parts, content, reasoning, finish = CHATS[name]
    projection = ChatProjection(CHAT_HEAD, include_usage=True)
    chunks = [*projection.begin(), *(chunk for part in parts for chunk in projection.take(part))]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks[:-1]]
    assert "".join(delta.get("content", "") for delta in deltas) == content
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == reasoning
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]]
    assert reasons == [None] * (len(chunks) - 2) + [finish]
    assert {key for delta in deltas for key in delta} <= {"role", "content", "reasoning_content"}
    assert (chunks[-1]["choices"], chunks[-1]["usage"]["total_tokens"]) == ([], 10)
    message = ChatCompletion.model_validate(projection.completion()).choices[0].message
    assert (message.content, message.model_extra) == (
        content,
        {"reasoning_content": reasoning} if reasoning else {},
    )
    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk)


def test_a_chat_that_has_failed_has_no_last_chunk() -> None:
    projection = ChatProjection(CHAT_HEAD)
    projection.begin()
    failed = Failed("auth", "No key.")
    assert [chunk for part in (failed, end("error")) for chunk in projection.take(part)] == []
    assert projection.failure == failed


NAME = "01a21750-949c-7ae0-a01f-ccc0eedfbbe4"


def test_ids_are_read_as_they_are_written() -> None:
    response_id = ResponseId(NAME, 17)
    assert str(response_id) == "resp_01a21750949c7ae0a01fccc0eedfbbe4_17"
    assert parse_response_id(str(response_id)) == response_id
    assert parse_conversation_id(format_conversation_id(NAME)) == NAME


@pytest.mark.parametrize("text", ["", "resp_x_1", f"resp_{'0' * 32}", f"resp_{'0' * 32}_01", NAME])
def test_what_is_no_id_is_none(text: str) -> None:
    assert parse_response_id(text) is None
    assert parse_conversation_id(text) is None
