"""Events are read from JSON, also in the seed's spellings; what is stored reads as before."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure import Invalid, read_event, read_event_folder
from perdure.events.actions import MCPToolAction, TerminalAction
from perdure.events.content import MessageToolCall, TextContent
from perdure.events.entry import Entry, parse_entry
from perdure.events.event import AnyEvent, UnknownEvent
from perdure.events.messages import MessageEvent, SystemPromptEvent
from perdure.events.observations import MCPToolObservation
from perdure.events.tools import ActionEvent, AgentErrorEvent, ObservationEvent
from perdure.exports.openhands import openhands_event
from tests.builders import EVENT_OF_EACH_KIND, entries
from tests.client.events.seed_examples import SEED_FILES
from tests.logs import condensed_logs

GOLDEN = sorted((Path(__file__).parents[2] / "golden" / "events").glob("*.json"))


def read_seed_file(name: str, **changes: Any) -> AnyEvent:
    return read_event(json.dumps(SEED_FILES[name] | changes))


def test_the_seeds_message_is_a_message() -> None:
    event = read_seed_file("000000_evt-user-msg-1.json")
    assert isinstance(event, MessageEvent)
    assert event.id == "evt-user-msg-1"
    assert event.timestamp == "2025-01-15T10:00:00.123000"
    assert event.activated_skills == ("files",)
    assert event.llm_message.content == (TextContent(text="创建一个 Python 文件"),)


def test_the_seeds_action_has_its_arguments_and_its_call() -> None:
    event = read_seed_file("000001_evt-action-1.json")
    assert isinstance(event, ActionEvent)
    assert event.action == MCPToolAction(data={"path": "test.py", "content": "print('hello')"})
    assert event.tool_call == MessageToolCall(
        id="call-xyz789", name="FileEditorTool", arguments='{"path": "test.py"}'
    )


def test_a_missing_call_is_made_of_the_action() -> None:
    event = read_seed_file("000001_evt-action-1.json", tool_call=None)
    assert isinstance(event, ActionEvent)
    assert (event.tool_call.id, event.tool_call.name) == ("call-xyz789", "FileEditorTool")
    assert json.loads(event.tool_call.arguments) == {
        "path": "test.py",
        "content": "print('hello')",
    }


def test_the_seeds_observation_is_a_result_with_its_fields() -> None:
    event = read_seed_file("000002_evt-obs-1.json")
    assert isinstance(event, ObservationEvent)
    seen = event.observation
    assert isinstance(seen, MCPToolObservation)
    assert (seen.tool_name, seen.is_error) == ("FileEditorTool", False)
    [part] = seen.content
    assert isinstance(part, TextContent)
    assert json.loads(part.text) == {"success": True, "message": "File created: test.py"}


@pytest.mark.parametrize(
    ("observation", "content", "is_error"),
    [
        ({"kind": "XObservation", "content": "It rains."}, "It rains.", False),
        ({"kind": "XObservation", "content": "No.", "is_error": True}, "No.", True),
        ({"kind": "XObservation", "success": False}, '{"success": false}', True),
        (
            {"kind": "XObservation", "content": [{"type": "text", "text": "a"}], "degrees": 3},
            "a",
            False,
        ),
    ],
)
def test_an_observation_of_an_unknown_tool_is_a_result(
    observation: dict[str, Any], content: str, is_error: bool
) -> None:
    event = read_seed_file("000002_evt-obs-1.json", observation=observation)
    assert isinstance(event, ObservationEvent)
    assert event.observation.content == (TextContent(text=content),)
    assert event.observation.is_error == is_error


@pytest.mark.parametrize(
    ("error", "classification"),
    [
        ("Tool 'fly' not found. Available: []", "unknown_tool"),
        ("Error validating args for 'fly': no wings", "bad_arguments"),
        ("The sky fell.", "tool_raised"),
    ],
)
def test_the_seeds_error_is_classified_by_its_sentence(error: str, classification: str) -> None:
    event = read_seed_file("000003_evt-error-1.json", error=error)
    assert isinstance(event, AgentErrorEvent)
    assert event.classification == classification


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2025-01-15T10:00:00", "2025-01-15T10:00:00.000000"),
        ("2025-01-15T10:00:00Z", "2025-01-15T10:00:00.000000"),
        ("2025-01-15T10:00:00.123Z", "2025-01-15T10:00:00.123000"),
        ("2025-01-15t10:00:00.5z", "2025-01-15T10:00:00.500000"),
        ("2025-01-15 10:00:00,25", "2025-01-15T10:00:00.250000"),
        ("2025-01-15T10:00:00.123456789Z", "2025-01-15T10:00:00.123456"),
        ("2025-01-15T12:00:00+02:00", "2025-01-15T10:00:00.000000"),
        ("2025-01-15T10:00", "2025-01-15T10:00:00.000000"),
        ("20250115T100000Z", "2025-01-15T10:00:00.000000"),
        ("2025-01-15", "2025-01-15T00:00:00.000000"),
        ("2026-03-01T09:00:00.000000", "2026-03-01T09:00:00.000000"),
    ],
)
def test_a_time_of_any_iso_form_is_the_moment_in_utc(written: str, read: str) -> None:
    assert read_seed_file("000000_evt-user-msg-1.json", timestamp=written).timestamp == read


@pytest.mark.parametrize("written", ["yesterday", "", 12, None])
def test_an_event_without_a_time_stays_unknown(written: Any) -> None:
    event = read_seed_file("000000_evt-user-msg-1.json", timestamp=written)
    assert isinstance(event, UnknownEvent)


@pytest.mark.parametrize(
    ("written", "name", "parameters"),
    [
        (
            {
                "type": "function",
                "function": {
                    "name": "look",
                    "description": "Looks.",
                    "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
                },
            },
            "look",
            {"type": "object", "properties": {"at": {"type": "string"}}},
        ),
        (
            {
                "kind": "MCPToolDefinition",
                "action_type": "MCPToolAction",
                "mcp_tool": {
                    "name": "look",
                    "description": "Looks.",
                    "inputSchema": {"type": "object", "properties": {}},
                    "annotations": {"readOnlyHint": True},
                },
            },
            "look",
            {"type": "object", "properties": {}},
        ),
        (
            {
                "kind": "FileEditorTool",
                "action_type": "FileEditorAction",
                "observation_type": "FileEditorObservation",
                "description": "Looks.",
            },
            "file_editor",
            {"type": "object", "properties": {}},
        ),
    ],
)
def test_the_tools_of_a_system_prompt_may_be_those_of_the_sdk(
    written: dict[str, Any], name: str, parameters: dict[str, Any]
) -> None:
    event = read_event(
        {
            "kind": "SystemPromptEvent",
            "id": "evt-0",
            "timestamp": "2025-01-15T10:00:00",
            "source": "agent",
            "system_prompt": {"type": "text", "text": "Be careful."},
            "tools": [written],
        }
    )
    assert isinstance(event, SystemPromptEvent)
    [tool] = event.tools
    assert (tool.name, tool.description, tool.parameters) == (name, "Looks.", parameters)


WAITS = ("WaitEvent", "QuestionEvent", "SignalEvent")


@pytest.mark.parametrize("entry", entries(EVENT_OF_EACH_KIND), ids=lambda entry: entry.event.kind)
def test_what_is_exported_for_openhands_is_read_again(entry: Entry) -> None:
    event = read_event(json.dumps(openhands_event(entry.event)))
    assert not isinstance(event, UnknownEvent)
    assert (event.id, event.timestamp) == (entry.event.id, entry.event.timestamp)
    others = {"RecallEvent", "StuckEvent", "DreamEvent", *WAITS}
    assert event.kind == entry.event.kind or entry.event.kind in others


def test_a_call_in_a_message_may_be_nested_and_have_decoded_arguments() -> None:
    function = {"name": "look", "arguments": {"at": "a"}}
    message = {
        "role": "assistant",
        "content": "Hm.",
        "tool_calls": [{"id": "c", "function": function}],
    }
    event = read_seed_file("000000_evt-user-msg-1.json", source="agent", llm_message=message)
    assert isinstance(event, MessageEvent)
    assert event.llm_message.tool_calls == (
        MessageToolCall(id="c", name="look", arguments='{"at": "a"}'),
    )


def test_an_action_of_a_kind_that_is_known_is_of_its_class() -> None:
    action = {"kind": "TerminalAction", "command": "ls"}
    event = read_seed_file("000001_evt-action-1.json", action=action)
    assert isinstance(event, ActionEvent)
    assert event.action == TerminalAction(command="ls")


def test_a_misspelt_field_is_no_event_of_its_kind() -> None:
    assert isinstance(read_seed_file("000000_evt-user-msg-1.json", conent="x"), UnknownEvent)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name)
def test_a_stored_event_is_read_as_the_log_reads_it(path: Path) -> None:
    body = path.read_bytes()
    assert read_event(body) == parse_entry(3, body).event


@pytest.mark.parametrize("entry", entries(EVENT_OF_EACH_KIND), ids=lambda entry: entry.event.kind)
def test_an_exported_line_is_read_as_its_event(entry: Entry) -> None:
    assert read_event({"seq": entry.seq, **json.loads(entry.body)}) == entry.event


@given(log=condensed_logs)
def test_every_event_of_any_log_is_read_as_the_log_reads_it(log: list[Entry]) -> None:
    for entry in log:
        assert read_event(entry.body) == parse_entry(entry.seq, entry.body).event


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(
    name=st.sampled_from(sorted(SEED_FILES)),
    changes=st.dictionaries(
        st.sampled_from(
            [
                "action",
                "observation",
                "tool_call",
                "llm_message",
                "kind",
                "thought",
                "error",
                "tools",
            ]
        ),
        json_values | st.fixed_dictionaries({"kind": json_values, "function": json_values}),
    ),
)
def test_any_json_object_is_an_event_if_only_an_unknown_one(
    name: str, changes: dict[str, Any]
) -> None:
    read_event({**SEED_FILES[name], **changes})


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path: Path) -> None:
    for name, fields in reversed(SEED_FILES.items()):
        (tmp_path / name).write_text(json.dumps(fields))
    events = list(read_event_folder(tmp_path))
    assert [event.id for event in events] == [fields["id"] for fields in SEED_FILES.values()]
    assert not [event for event in events if isinstance(event, UnknownEvent)]


def test_what_is_no_event_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="this is no JSON"):
        read_event("{")
    with pytest.raises(Invalid, match="not a list"):
        read_event("[]")
    (tmp_path / "000000_a.json").write_text("{")
    with pytest.raises(Invalid, match=r"000000_a\.json"):
        list(read_event_folder(tmp_path))
    with pytest.raises(NotADirectoryError):
        list(read_event_folder(tmp_path / "events"))
