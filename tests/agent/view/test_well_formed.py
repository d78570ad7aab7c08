"""Any provider accepts the prompt of any log."""

import json
from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from perdure.agent.spec import (
    BrowserMaskingCondenser,
    CondenserSpec,
    MaskingCondenser,
    NoCondenser,
    PipelineCondenser,
    RecentCondenser,
)
from perdure.agent.view.transcript import ChatMessage, Transcript
from perdure.events.entry import Entry
from perdure.events.event import AnyEvent
from perdure.events.messages import MessageEvent
from perdure.events.tools import ActionEvent
from tests.logs import ANSWERS, LogWriter, add_events, condensed_logs, logs

SHOWING: list[CondenserSpec] = [
    NoCondenser(),
    RecentCondenser(max_events=4, keep_first=1),
    MaskingCondenser(attention_window=3, max_chars=6),
    PipelineCondenser(
        condensers=(RecentCondenser(max_events=8), BrowserMaskingCondenser(tools=("l*",)))
    ),
]
"""What lets a prompt show less than there is."""


def check_well_formed(messages: Sequence[ChatMessage]) -> None:
    rest, ids = list(messages), []
    while rest:
        message = rest.pop(0)
        assert message["role"] in ("system", "user", "assistant")
        calls = message.get("tool_calls")
        assert calls is None or calls
        assert message["content"] or calls
        for call in calls or ():
            answer = rest.pop(0)
            assert (answer["role"], answer["tool_call_id"]) == ("tool", call["id"])
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            ids.append(call["id"])
    assert len(ids) == len(set(ids))
    assert all(ids)
    assert [message["role"] for message in messages].count("system") <= 1


@given(condensed_logs, st.sampled_from(SHOWING))
def test_a_prompt_is_well_formed_at_every_moment(
    log: list[Entry], condenser: CondenserSpec
) -> None:
    transcript = Transcript(condenser)
    for entry in log:
        transcript.view.add(entry.event)
        check_well_formed(transcript.messages())


@given(logs)
def test_every_message_is_there_once_and_in_order(log: list[Entry]) -> None:
    transcript, heard = Transcript(), []
    for entry in log:
        event = entry.event
        transcript.view.add(event)
        if isinstance(event, MessageEvent) and event.source != "agent":
            label = "message" if event.source == "user" else "nudge"
            heard.append(f"{label} {entry.seq}")
    messages = transcript.messages()
    words = [message["content"].split("\n")[0] for message in messages if message["role"] == "user"]
    assert [word for word in words if not word.startswith("recalled")] == heard


@given(condensed_logs, st.data())
def test_a_transcript_grows_as_if_it_were_made_at_once(
    log: list[Entry], data: st.DataObject
) -> None:
    events = [entry.event for entry in log]
    cut = data.draw(st.integers(0, len(events)))
    whole, grown = Transcript(), Transcript()
    add_events(whole.view, events)
    add_events(grown.view, events[:cut])
    grown.messages().clear()  # the list is the caller's
    add_events(grown.view, events[cut:])
    assert grown.messages() == whole.messages()
    assert grown.tools == whole.tools


EVERYTHING = RecentCondenser(max_events=10_000)
"""Shows all events, by the way that builds a prompt anew."""


@given(st.one_of(logs, condensed_logs), st.data())
def test_a_transcript_that_grows_is_at_every_moment_the_one_built_anew(
    log: list[Entry], data: st.DataObject
) -> None:
    """Whatever is missing of the log: a fork, or a step of a condensed one, reads a part of it."""
    gap = data.draw(st.integers(0, len(log)))
    entries = log[:gap] + log[gap + data.draw(st.integers(0, 3)) :]
    grown = Transcript()
    for number, entry in enumerate(entries, 1):
        grown.view.add_entries([entry])
        if data.draw(st.booleans()):
            grown.condenser = data.draw(st.sampled_from(SHOWING))
            built = Transcript(grown.condenser if grown.condenser in SHOWING[1:] else EVERYTHING)
            built.view.add_entries(entries[:number])
            assert grown.messages() == built.messages()


def test_a_step_renders_only_new_events() -> None:
    """The messages before are the same objects, whatever the events behind them."""
    scribe = LogWriter()
    transcript = Transcript()
    add_events(transcript.view, [entry.event for entry in scribe.entries])
    before: list[ChatMessage] = []
    for number in range(20):
        scribe.write_thinking(4 * number + 1)
        add_events(transcript.view, [entry.event for entry in scribe.entries[-2:]])
        messages = transcript.messages()
        assert len(messages) == 2 * number + 3
        assert all(then is now for then, now in zip(before[1:], messages[1:], strict=False))
        before = messages


@given(logs)
def test_a_batch_is_shown_when_every_call_has_its_result_and_else_not_at_all(
    log: list[Entry],
) -> None:
    transcript = Transcript()
    add_events(transcript.view, (entry.event for entry in log))
    visible_ids = {event.id for event in transcript.view.events}
    calls = [
        len(message["tool_calls"]) for message in transcript.messages() if message.get("tool_calls")
    ]
    expected = [batch for batch in batches(log) if whole(batch, log)]
    looping = [batch for batch in expected if batch[0].id not in visible_ids]
    assert calls == [len(batch) for batch in expected if batch not in looping]
    assert not looping or any(event.thinking_blocks for batch in batches(log) for event in batch)


def batches(log: list[Entry]) -> list[list[ActionEvent]]:
    """The actions that stand side by side under one response."""
    groups: list[list[ActionEvent]] = []
    before: AnyEvent | None = None
    for event in (entry.event for entry in log):
        if isinstance(event, ActionEvent):
            beside = isinstance(before, ActionEvent)
            if not beside or groups[-1][-1].llm_response_id != event.llm_response_id:
                groups.append([])
            groups[-1].append(event)
        before = event
    return groups


def whole(batch: list[ActionEvent], log: list[Entry]) -> bool:
    """The calls that could not be read are answered as soon as they are on record."""
    first = next(entry.seq for entry in log if entry.event.id == batch[0].id)
    answered = Counter(
        entry.event.action_id for entry in log[first:] if isinstance(entry.event, ANSWERS)
    )
    return {event.id for event in batch if event.action} <= answered.keys()
