"""Recordings in every format are replayed."""

import contextlib
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agent.calls.completion import Completion
from perdure.agent.spec import Agent, ModelSpec
from perdure.events.content import Message, MessageToolCall, TextContent, ThinkingBlock, join_text
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.entry import Origin, make_entry
from perdure.events.event import AnyEvent
from perdure.events.messages import MessageEvent
from perdure.events.observations import ThinkObservation
from perdure.events.tools import ActionEvent, ObservationEvent
from perdure.models.model import ModelRefused, Purpose, Request
from perdure.models.router import ModelRouter
from perdure.testing.errors import ScriptError
from perdure.testing.replay import read_recording
from tests.builders import SPEC
from tests.models.requests import calm, text_in, user

NOW = "2025-01-01T00:00:00.000000"
TEXT = (TextContent(text="a"), TextContent(text="b"))


def message(source: Any, *texts: str, **fields: Any) -> MessageEvent:
    content = tuple(TextContent(text=text) for text in texts)
    role: Any = "assistant" if source == "agent" else "user"
    llm_message = Message(role=role, content=content)
    return MessageEvent(timestamp=NOW, source=source, llm_message=llm_message, **fields)


def act(call_id: str, response: str, arguments: str = "{}", **fields: Any) -> ActionEvent:
    call = MessageToolCall(id=call_id, name="think", arguments=arguments)
    return ActionEvent(
        timestamp=NOW,
        tool_name="think",
        tool_call_id=call_id,
        tool_call=call,
        llm_response_id=response,
        **fields,
    )


def seen(call_id: str) -> ObservationEvent:
    return ObservationEvent(
        timestamp=NOW,
        action_id="x",
        tool_name="think",
        tool_call_id=call_id,
        observation=ThinkObservation(content=TEXT),
    )


OURS: tuple[AnyEvent, ...] = (
    ConversationStateUpdateEvent(timestamp=NOW, key="opened", value={"run_id": "r"}),
    ConversationStateUpdateEvent(timestamp=NOW, key="spec", value=SPEC.model_dump(mode="json")),
    message("user", "Go."),
    act(
        "c1",
        "r1",
        '{"thought": "Hm."}',
        thought=(TextContent(text="Let me think."),),
        reasoning_content="deep",
        thinking_blocks=(ThinkingBlock(thinking="deep", signature="s"),),
    ),
    act("c2", "r1", "no JSON"),
    seen("c1"),
    message("environment", "You repeat yourself.", sender="stuck"),
    message("agent", "half of", sender="interrupted"),
    message("agent", "Done.", llm_response_id="r2"),
    message("user", "And", "on."),
)


def stored() -> list[dict[str, Any]]:
    """Format events like `perdure show`."""
    entries = [
        make_entry(seq, event, Origin(run="r", activity="a")) for seq, event in enumerate(OURS)
    ]
    return [{"seq": entry.seq, **json.loads(entry.body)} for entry in entries]


def written(path: Path, events: Sequence[Any]) -> Path:
    path.write_text("\n".join(json.dumps(event) for event in events))
    return path


async def answer(
    path: Path, number: int | None, *others: ModelSpec, purpose: Purpose = "", **fields: Any
) -> Completion:
    model = ModelSpec(name=f"replay:{path}")
    messages = fields.pop("messages", [user("go")])
    request = Request(model, messages, fallbacks=others, purpose=purpose, number=number)
    return await ModelRouter().complete(request, lambda _: None)


@pytest.mark.parametrize("form", ["lines", "list", "object", "folder", "conversation"])
async def test_the_nth_answer_is_the_nth_recorded_one(tmp_path: Path, form: str) -> None:
    events, path = stored(), tmp_path / "recording"
    match form:
        case "lines":
            written(path, [{"conversation_id": "x"}, *events, {"result": {}}])
        case "list":
            path.write_text(json.dumps(events))
        case "object":
            path.write_text(json.dumps({"events": events}))
        case "folder" | "conversation":
            folder = path / "events" if form == "conversation" else path
            folder.mkdir(parents=True)
            (path / "base_state.json").write_text("{}")
            for nth, event in enumerate(events):
                (folder / f"event-{nth}-some-id.json").write_text(json.dumps(event))
    first, second = await answer(path, 0), await answer(path, 1)
    calls = first.message.tool_calls or ()
    assert [(call.id, call.name, call.arguments) for call in calls] == [
        ("c1", "think", '{"thought": "Hm."}'),
        ("c2", "think", "no JSON"),
    ]
    assert (text_in(first), first.message.reasoning_content) == ("Let me think.", "deep")
    assert first.message.thinking_blocks == (ThinkingBlock(thinking="deep", signature="s"),)
    assert (first.finish_reason, second.finish_reason) == ("tool_calls", "stop")
    assert (text_in(second), second.message.tool_calls) == ("Done.", None)
    assert first.id != (await answer(path, 0)).id, "each answer is a batch of its own"


async def test_without_a_number_the_answers_in_the_prompt_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl", stored())
    messages = [user("Go."), {"role": "assistant", "content": "so"}, user("on")]
    assert text_in(await answer(path, None, messages=messages)) == "Done."


async def test_a_fallback_continues_after_the_end_of_a_recording(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl", stored())
    script = tmp_path / "live.json"
    script.write_text('{"answers": ["one", "two", "I live."]}')
    live = ModelSpec(name=f"scripted:{script}")
    assert text_in(await answer(path, 1, live)) == "Done."
    assert text_in(await answer(path, 2, live)) == "I live."
    summary = await answer(path, 0, live, purpose="condense")
    assert summary.model == live.name, "nobody recorded a summary"


async def test_the_end_of_a_recording_without_fallback_says_what_to_do(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl", stored())
    with pytest.raises(ModelRefused, match=r"has 2 answers and no more: configure") as raised:
        await answer(path, 2)
    assert raised.value.code == "recording_exhausted"
    with pytest.raises(ModelRefused, match=r"gone cannot be read") as raised:
        await answer(tmp_path / "gone", 0)
    assert raised.value.code == "model_not_found"


async def test_a_changed_recording_is_read_again(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl", stored())
    await answer(path, 0)
    written(path, [event.model_dump() for event in (message("agent", "New."),)])
    assert text_in(await answer(path, 0)) == "New."


def test_a_recording_has_user_messages_spec_and_results(tmp_path: Path) -> None:
    recording = read_recording(written(tmp_path / "r.jsonl", stored()))
    assert [user_message.text for user_message in recording.user_messages] == ["Go.", "And\non."]
    assert recording.results == {"c1": "a\nb"}
    assert isinstance(recording.spec, Agent)
    assert recording.spec == SPEC


def called(call_id: str, name: str, arguments: str, response: str, words: str) -> dict[str, Any]:
    """Build the metadata of a call in a legacy trajectory of OpenHands."""
    function = {"name": name, "arguments": arguments}
    made = {"content": words, "tool_calls": [{"id": call_id, "function": function}]}
    completion = {"id": response, "choices": [{"message": made}]}
    return {"tool_call_id": call_id, "function_name": name, "model_response": completion}


OLD: tuple[dict[str, Any], ...] = (
    {"source": "agent", "action": "system", "args": {"content": "You are"}},
    {
        "source": "user",
        "action": "message",
        "args": {"content": "Fix it.", "image_urls": ["http://host/a.png"]},
    },
    {"source": "user", "action": "recall", "args": {"query": "Fix it."}},
    {"source": "environment", "observation": "recall", "content": "known", "extras": {}},
    {
        "source": "agent",
        "action": "run",
        "args": {"command": "ls", "thought": "Look."},
        "tool_call_metadata": called("t1", "execute_bash", '{"command": "ls"}', "m1", "Look."),
    },
    {
        "source": "agent",
        "observation": "run",
        "content": "a.txt",
        "tool_call_metadata": {"tool_call_id": "t1"},
    },
    {"source": "agent", "action": "run", "args": {"command": "cd /", "thought": "Away."}},
    {"source": "agent", "action": "read", "args": {"path": "a.txt"}},
    {"source": "agent", "action": "write", "args": {"path": "b.txt", "content": "b"}},
    {
        "source": "agent",
        "action": "edit",
        "args": {"command": "str_replace", "path": "b.txt", "old_str": "b", "new_str": None},
    },
    {"source": "agent", "action": "call_tool_mcp", "args": {"name": "web", "arguments": {"q": 1}}},
    {"source": "environment", "observation": "agent_state_changed", "content": ""},
    {"source": "agent", "action": "message", "args": {"content": "Shall I?"}},
    {"source": "user", "action": "message", "args": {"content": "Yes."}},
    {
        "source": "agent",
        "action": "finish",
        "args": {"final_thought": "Fixed."},
        "tool_call_metadata": called(
            "t2", "finish", '{"message": "Fixed.", "task_completed": "true"}', "m2", ""
        ),
    },
)


def test_a_legacy_trajectory_is_read(tmp_path: Path) -> None:
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(OLD))
    recording = read_recording(path)
    assert [
        (user_message.text, user_message.images) for user_message in recording.user_messages
    ] == [
        ("Fix it.", ("http://host/a.png",)),
        ("Yes.", ()),
    ]
    steps = [
        (join_text(answer.content), *((call.name, json.loads(call.arguments)) for call in calls))
        for answer in recording.answers
        for calls in [answer.tool_calls or ()]
    ]
    assert steps == [
        ("Look.", ("execute_bash", {"command": "ls"})),
        ("Away.", ("terminal", {"command": "cd /"})),
        ("", ("file_editor", {"command": "view", "path": "a.txt"})),
        ("", ("file_editor", {"command": "create", "path": "b.txt", "file_text": "b"})),
        ("", ("file_editor", {"command": "str_replace", "path": "b.txt", "old_str": "b"})),
        ("", ("web", {"q": 1})),
        ("Shall I?",),
        ("", ("finish", {"message": "Fixed."})),
    ]
    ids = [call.id for answer in recording.answers for call in answer.tool_calls or ()]
    assert (ids[0], ids[-1], len(set(ids))) == ("t1", "t2", len(ids))
    assert recording.results == {"t1": "a.txt"}


def test_every_spelling_of_sdk_events_is_read(tmp_path: Path) -> None:
    function = {"name": "terminal", "arguments": '{"command": "ls"}'}
    sdk = [
        {"kind": "ActionEvent", "tool_call": {"id": "a", "type": "function", "function": function}},
        {
            "kind": "ActionEvent",
            "tool_name": "terminal",
            "tool_call_id": "b",
            "action": {"kind": "TerminalAction", "command": "pwd"},
        },
        {"kind": "SomethingNew", "value": [1, 2]},
        {"kind": "MessageEvent", "source": "agent", "llm_message": {"content": "plain"}},
    ]
    answers = read_recording(written(tmp_path / "r.jsonl", sdk)).answers
    calls = [call for answer in answers for call in answer.tool_calls or ()]
    assert [(call.id, call.name, json.loads(call.arguments)) for call in calls] == [
        ("a", "terminal", {"command": "ls"}),
        ("b", "terminal", {"command": "pwd"}),
    ]
    assert join_text(answers[-1].content) == "plain"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "is no recording of a conversation"),
        ("[]", "is no recording of a conversation"),
        ("17", "is no recording of a conversation"),
        ('{"a": 1}', "is no recording of a conversation"),
        ('{"kind": "ActionEvent"', "is not valid JSON"),
        ('{"seq": 3, "error": {"code": "damaged"}}', "lacks event 3"),
    ],
)
def test_an_invalid_recording_is_refused_with_a_sentence(
    tmp_path: Path, content: str, complaint: str
) -> None:
    path = tmp_path / "r.json"
    path.write_text(content)
    with pytest.raises(ScriptError, match=complaint):
        read_recording(path)


LEAVES = st.none() | st.integers(0, 9) | st.sampled_from(("x", "{}", "[1]", "finish"))
INNER = (
    *("content", "image_urls", "thought", "function", "name", "arguments", "id", "text"),
    *("tool_call_id", "model_response", "choices", "message", "tool_calls", "data", "command"),
)
NONSENSE = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(INNER), inner, max_size=8)
    ),
    max_leaves=12,
)
KINDS = ("MessageEvent", "ActionEvent", "ObservationEvent", "ConversationStateUpdateEvent")
OUTER = (
    *("args", "content", "tool_call_metadata", "tool_call", "llm_message", "thought", "action"),
    *("llm_response_id", "value"),
)
EVENTS = st.one_of(
    [
        st.fixed_dictionaries(
            {"source": st.sampled_from(("user", "agent")), name: st.sampled_from(values)},
            optional={item: NONSENSE for item in OUTER if item != name},
        )
        for name, values in (("kind", KINDS), ("action", ("message", "run", "finish", "mcp")))
    ]
)


@given(st.lists(EVENTS, min_size=1, max_size=3))
@calm
def test_arbitrary_events_are_read_or_refused(events: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder) / "r.jsonl", events)
        with contextlib.suppress(ScriptError):
            read_recording(path)
