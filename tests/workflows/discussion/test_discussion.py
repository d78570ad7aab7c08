"""A discussion on a real server: its rounds, its moderator, its votes, and what agents see."""

import json
from typing import Any

import pytest

from perdure.agent.discussion.steps import speaker_conversation_id
from perdure.agent.discussion.spec import DiscussionKey
from perdure.events.messages import MessageEvent
from perdure.events.content import join_text
from tests.harness import ConversationHarness, tool_call_answer
from tests.workflows.discussion.debate import (
    PASS,
    ballot,
    debate,
    lines,
    read_all,
    start,
    wants,
)


async def test_a_round_has_intents_grants_speeches_and_a_summary(
    harness: ConversationHarness,
) -> None:
    spec = debate(
        harness.folder,
        {
            "ada": [wants(3, "costs"), "It costs less."],
            "bob": [wants(8, "people"), "People rest."],
            "cyd": [PASS],
        },
    )
    async with harness.worker():
        handle = await start(harness, spec)
        result = await handle.result()
    events = await read_all(harness, result.session_id)
    assert lines(events) == [
        'SYSTEM system: {"action":"OPENED","details":{"topic":"Should we work four days?",'
        '"agents":["ada","bob","cyd"],"phases":["discussion"]}}',
        'INTENT ada: {"urgency":3,"line":"costs"}',
        'INTENT bob: {"urgency":8,"line":"people"}',
        'SYSTEM system: {"action":"GRANT","details":{"speaker":"bob"}}',
        'SYSTEM system: {"action":"GRANT","details":{"speaker":"ada"}}',
        "SPEECH bob: People rest.",
        "SPEECH ada: It costs less.",
        "SUMMARY moderator: Phase “discussion”: 2 speeches.\nbob: People rest.\nada: It costs less.",
        'SYSTEM system: {"action":"PHASE_TRANSITION","details":{"from":"discussion","to":"end"}}',
    ]
    assert [event.sequence for event in events] == list(range(1, 10))
    assert (result.status, result.summary) == ("finished", events[7].text)
    assert result.speeches == {"bob": 1, "ada": 1}
    assert result.log == f"users/local/discussions/{result.session_id}/"
    assert events[5].to_json()["meta"] == {"phase": "discussion", "round": 1}
