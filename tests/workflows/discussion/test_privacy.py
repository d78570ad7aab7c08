"""What agents are shown of a discussion, and what never leaves them."""

import json
from typing import Any

import pytest

from perdure.agent.discussion.spec import DiscussionKey
from perdure.agent.discussion.steps import speaker_conversation_id
from perdure.events.content import join_text
from perdure.events.messages import MessageEvent
from tests.harness import ConversationHarness, tool_call_answer
from tests.workflows.discussion.debate import (
    PASS,
    debate,
    lines,
    read_all,
    start,
    wants,
)


@pytest.mark.long
async def test_a_speech_with_tools_is_a_turn_of_the_agents_own_conversation(
    harness: ConversationHarness,
) -> None:
    add = tool_call_answer(("add", {"a": 20, "b": 22}), content="Let me count in secret.")
    speech = {"content": "It is 42.", "usage": {"completion_tokens": 7}}
    spec = debate(
        harness.folder,
        {"ada": [wants(1), add, speech, PASS], "bob": [PASS, PASS]},
        tools={"ada": ["tests.example_tools:TOOLS"]},
        phases=[{"name": "one"}, {"name": "two"}],
    )
    async with harness.worker():
        result = await (await start(harness, spec)).result()
    events = await read_all(harness, result.session_id)
    [said] = [event for event in events if event.type == "SPEECH"]
    assert said.text == "It is 42."
    assert said.meta is not None
    assert said.meta.tokens == 7
    log = conversation_of(harness, result.session_id, "ada").log
    kinds = [entry.event.kind for entry in await log.read(0, 100)]
    assert "ObservationEvent" in kinds


async def test_agents_see_shared_events_and_nothing_of_another(
    harness: ConversationHarness,
) -> None:
    """What ada is told about herself, thinks and gets from tools reaches neither log nor bob."""
    add = tool_call_answer(("add", {"a": 20, "b": 22}), content="my hidden thought")
    peek = tool_call_answer(("read_conversation", {"of": "ada"}))
    spec = debate(
        harness.folder,
        {"ada": [wants(9), add, "It is 42."], "bob": [wants(1), peek, "Fine."]},
        tools={"ada": ["tests.example_tools:TOOLS"], "bob": ["think"]},
    )
    async with harness.worker():
        result = await (await start(harness, spec)).result()
    shared = "\n".join(lines(await read_all(harness, result.session_id)))
    of_bob = await all_text(harness, result.session_id, "bob")
    assert "It is 42." in of_bob
    assert "bob-secret" in of_bob
    assert "read_conversation" in of_bob  # there is no such tool, which is what it learns
    for text in (shared, of_bob):
        assert "ada-secret" not in text
        assert "hidden thought" not in text
    assert "hidden thought" in await all_text(harness, result.session_id, "ada")


@pytest.mark.long
async def test_an_agent_is_told_what_is_new_since_its_last_turn(
    harness: ConversationHarness,
) -> None:
    spec = debate(
        harness.folder,
        {"ada": [wants(9, "first of all"), "Hear me.", PASS], "bob": [wants(1), "I did.", PASS]},
        phases=[{"name": "talk", "rounds": 2}],
    )
    async with harness.worker():
        result = await (await start(harness, spec)).result()
    log = conversation_of(harness, result.session_id, "bob").log
    prompts = [
        join_text(entry.event.llm_message.content)
        for entry in await log.read(0, 100)
        if isinstance(entry.event, MessageEvent) and entry.event.source == "user"
    ]
    assert len(prompts) == 3
    shown = [
        [json.loads(line) for line in prompt.splitlines() if line.startswith('{"type"')]
        for prompt in prompts
    ]
    assert [[event["type"] for event in events] for events in shown] == [
        ["SYSTEM"],
        ["INTENT", "SYSTEM", "SYSTEM", "SPEECH"],
        [],
    ]
    assert all(event.keys() == {"type", "speaker", "content", "timestamp"} for event in shown[1])
    assert shown[1][0]["content"] == '{"urgency":9,"line":"first of all"}'


def conversation_of(harness: ConversationHarness, session_id: str, speaker: str) -> Any:
    key = DiscussionKey(user_id=harness.client.user_id, session_id=session_id)
    return harness.client.conversation(speaker_conversation_id(key, speaker))


async def all_text(harness: ConversationHarness, session_id: str, speaker: str) -> str:
    """Return all that the conversation of an agent has stored."""
    log = conversation_of(harness, session_id, speaker).log
    return "\n".join(entry.body.decode() for entry in await log.read(0, 1000))
