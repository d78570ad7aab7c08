"""mcpbench's logs and statistics, against figures that were counted by hand."""

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given

from perdure.events.actions import MCPToolAction
from perdure.events.condensation import Condensation, CondensationRequest
from perdure.events.content import ImageContent, Message, TextContent
from perdure.events.control import PauseEvent
from perdure.events.entry import Entry
from perdure.events.event import AnyEvent
from perdure.events.messages import MessageEvent
from perdure.events.observations import MCPToolObservation
from perdure.events.tools import ActionEvent, ObservationEvent
from perdure.exports.mcpbench import (
    MCPBENCH,
    MCPBENCH_STATISTICS,
    convert_events_to_jsonl,
    convert_events_to_logs,
    count_event_statistics,
)
from tests.builders import (
    TIMESTAMP,
    action,
    agent,
    call,
    condensation,
    entries,
    error,
    id_of,
    observation,
    opened_event,
    overflow,
    partial_message,
    prompt,
    rejection,
    text,
    unknown_event,
    user,
)
from tests.exports.checks import export_files
from tests.exports.sample_log import ABOUT, PIXEL
from tests.logs import condensed_logs, recall_event, system_message

SEED_CONVERSATION: list[AnyEvent] = [
    MessageEvent(
        id="evt-001",
        timestamp=TIMESTAMP,
        source="user",
        llm_message=Message(role="user", content=text("帮我写个程序")),
    ),
    ActionEvent(
        id="evt-002",
        timestamp=TIMESTAMP,
        thought=text("我需要创建文件"),
        action=MCPToolAction(data={"path": "test.py", "content": "print('hello')"}),
        tool_name="FileEditorTool",
        tool_call_id="call-123",
        tool_call=call("FileEditorTool", "call-123", '{"path": "test.py"}'),
        llm_response_id="resp-456",
    ),
    ObservationEvent(
        id="evt-003",
        timestamp=TIMESTAMP,
        action_id="evt-002",
        tool_name="FileEditorTool",
        tool_call_id="call-123",
        observation=MCPToolObservation(
            tool_name="FileEditorTool", content=text("File created: test.py")
        ),
    ),
]
"""The seed's own example of an event list."""

SEED_CONDENSATION: list[AnyEvent] = [
    *[user(f"{nth}") for nth in range(150)],
    Condensation(
        timestamp=TIMESTAMP,
        forgotten_event_ids=tuple(f"evt-{nth:03}" for nth in range(4, 95)),
        summary="用户请求创建了多个文件...",
        summary_offset=4,
    ),
]
"""The seed's own example of a condensation: the 151 events of its log."""

SEED_PARALLEL_CALLS: list[AnyEvent] = [
    user("帮我"),
    action("look", "call-1", "resp-123"),
    action("look", "call-2", "resp-123"),
    observation(id_of(1), call_id="call-1"),
    observation(id_of(2), call_id="call-2"),
    agent("我来帮你创建"),
]

# Turns, calls, errors, condensations.
TABLE: dict[str, tuple[list[AnyEvent], tuple[int, int, int, int]]] = {
    "the seed's event list": (SEED_CONVERSATION, (1, 1, 0, 0)),
    "the seed's condensation": (SEED_CONDENSATION, (150, 0, 0, 1)),
    "the seed's parallel calls": (SEED_PARALLEL_CALLS, (1, 2, 0, 0)),
    "no events": ([], (0, 0, 0, 0)),
    "a question": ([user()], (1, 0, 0, 0)),
    "a question and an answer": ([user(), agent()], (1, 0, 0, 0)),
    "an agent alone": ([agent(), agent()], (0, 0, 0, 0)),
    "three turns": ([user(), agent(), user(), agent(), user(), agent()], (3, 0, 0, 0)),
    "two messages before an answer": ([user(), user(), agent()], (2, 0, 0, 0)),
    "a call without a result": ([user(), action()], (1, 1, 0, 0)),
    "a result without a call": ([user(), observation(id_of(9))], (1, 0, 0, 0)),
    "an unknown tool": (
        [user(), action("fly", valid=False), error(None, "fly"), agent()],
        (1, 0, 1, 0),
    ),
    "a good call beside a bad one": (
        [
            user(),
            action("look", "call_1"),
            action("fly", "call_2", valid=False),
            error(None, "fly", "call_2"),
            observation(id_of(1)),
        ],
        (1, 1, 1, 0),
    ),
    "a tool that raised": ([user(), action(), error(id_of(1)), agent()], (1, 1, 1, 0)),
    "a rejected call": ([user(), action(), rejection(id_of(1)), agent()], (1, 1, 0, 0)),
    "a warning of the system": ([user(), system_message("Hurry."), agent()], (1, 0, 0, 0)),
    "a recall": ([user(), recall_event("Use hatch.", "builds"), agent()], (1, 0, 0, 0)),
    "an answer that was stopped": ([user(), partial_message(), user(), agent()], (2, 0, 0, 0)),
    "two condensations and a request": (
        [
            user(),
            agent(),
            overflow(),
            condensation(0, 0),
            CondensationRequest(timestamp=TIMESTAMP),
            condensation(1, 1, "In short."),
        ],
        (1, 0, 0, 2),
    ),
    "all that is neither": (
        [
            opened_event(),
            prompt(),
            PauseEvent(timestamp=TIMESTAMP),
            unknown_event("ActionEvent", tool_name="look"),
            unknown_event("MessageEvent"),
        ],
        (0, 0, 0, 0),
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_statistics_are_those_that_were_counted_by_hand(name: str) -> None:
    events, expected = TABLE[name]
    names = ("interaction_turns", "tool_calls", "errors", "condensations")
    assert count_event_statistics(events) == dict(zip(names, expected, strict=True))


def test_the_table_has_twenty_logs() -> None:
    assert len(TABLE) == 20


def test_the_logs_of_the_seeds_conversation_are_exact() -> None:
    arguments = '{"kind":"MCPToolAction","data":{"path":"test.py","content":"print(\'hello\')"}}'
    assert convert_events_to_logs(SEED_CONVERSATION) == [
        {"role": "user", "content": "帮我写个程序"},
        {
            "role": "assistant",
            "content": "我需要创建文件",
            "tool_calls": [
                {
                    "id": "call-123",
                    "type": "function",
                    "function": {"name": "FileEditorTool", "arguments": arguments},
                }
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "call-123",
            "name": "FileEditorTool",
            "content": "File created: test.py",
        },
    ]


def test_a_message_is_logged_by_its_source_and_without_additions() -> None:
    event = user("Build it.").model_copy(update={"extended_content": text("<workspace>")})
    logs = convert_events_to_logs([event, recall_event("Use hatch.", "builds"), agent("Done.")])
    assert logs == [
        {"role": "user", "content": "Build it."},
        {"role": "agent", "content": "Done."},
    ]


def test_an_image_of_a_message_is_left_out() -> None:
    parts = (TextContent(text="See:"), ImageContent(image_urls=(PIXEL,)))
    message = Message(role="user", content=parts)
    event = MessageEvent(timestamp=TIMESTAMP, source="user", llm_message=message)
    assert convert_events_to_logs([event]) == [{"role": "user", "content": "See:"}]


@pytest.mark.parametrize(
    ("events", "roles"),
    [
        ([user(), system_message("Hurry."), agent()], ["user", "agent"]),
        ([action("fly", valid=False), error(None, "fly")], []),
        ([action(), error(id_of(0))], ["assistant"]),
        ([action(), rejection(id_of(0))], ["assistant"]),
        ([action(), action(), observation(id_of(1)), observation(id_of(0))],
         ["assistant", "assistant", "tool", "tool"]),
        ([user(), condensation(0, 0, "In short."), agent()], ["user", "agent"]),
    ],
)  # fmt: skip
def test_the_logs_have_the_roles_of_the_seed(events: list[AnyEvent], roles: list[str]) -> None:
    assert [log["role"] for log in convert_events_to_logs(events)] == roles


def test_history_is_one_log_a_line_as_the_seed_writes_it() -> None:
    expected = "".join(json.dumps(log) + "\n" for log in convert_events_to_logs(SEED_CONVERSATION))
    assert convert_events_to_jsonl(SEED_CONVERSATION) == expected
    assert expected.count("\n") == 3
    assert expected.isascii()


@given(log=condensed_logs)
def test_the_logs_and_the_counts_of_any_log_agree(log: list[Entry]) -> None:
    events = [entry.event for entry in log]
    lines = [json.loads(line) for line in convert_events_to_jsonl(events).splitlines()]
    assert lines == convert_events_to_logs(events)
    counts = count_event_statistics(events)
    roles = Counter(line["role"] for line in lines)
    assert (roles["user"], roles["assistant"]) == (
        counts["interaction_turns"],
        counts["tool_calls"],
    )
    assert set(roles) <= {"user", "agent", "assistant", "tool"}
    for line in lines:
        for made in line.get("tool_calls", ()):
            assert "kind" in json.loads(made["function"]["arguments"])


def test_the_export_is_the_history_of_the_logs_events() -> None:
    log = entries(SEED_PARALLEL_CALLS)
    exported = export_files(MCPBENCH, ABOUT, log)[""].decode()
    assert exported == convert_events_to_jsonl(SEED_PARALLEL_CALLS)
    lines: list[Any] = [json.loads(line) for line in exported.splitlines()]
    assert [line["role"] for line in lines] == [
        "user", "assistant", "assistant", "tool", "tool", "agent",
    ]  # fmt: skip
    counts = export_files(MCPBENCH_STATISTICS, ABOUT, log)[""]
    assert json.loads(counts)["tool_calls"] == 2
