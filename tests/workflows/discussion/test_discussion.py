"""A discussion on a real server: its rounds, its moderator, its votes, and what agents see."""

import json
from typing import Any

import pytest

from perdure.storage.discussions.service import EventLogService
from tests.harness import ConversationHarness
from tests.workflows.discussion.debate import (
    PASS,
    ballot,
    debate,
    lines,
    read_all,
    start,
    wants,
)


@pytest.mark.long
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
        "SUMMARY moderator: Phase “discussion”: 2 speeches."
        "\nbob: People rest.\nada: It costs less.",
        'SYSTEM system: {"action":"PHASE_TRANSITION","details":{"from":"discussion","to":"end"}}',
    ]
    assert [event.sequence for event in events] == list(range(1, 10))
    assert (result.status, result.summary) == ("finished", events[7].text)
    assert result.speeches == {"bob": 1, "ada": 1}
    assert result.log == f"users/local/discussions/{result.session_id}/"
    assert events[5].to_json()["meta"] == {"phase": "discussion", "round": 1}


@pytest.mark.long
async def test_phases_follow_one_another_votes_are_tallied_and_what_was_said_is_pruned(
    harness: ConversationHarness,
) -> None:
    spec = debate(
        harness.folder,
        {
            "ada": [wants(5), "Yes, for it costs less.", PASS, ballot("yes")],
            "bob": [PASS, PASS, ballot("No", "I like work.")],
            "cyd": [PASS, PASS, "YES"],
        },
        phases=[
            {"name": "opening"},
            {"name": "decision", "end": "vote", "rounds": 3, "question": "Four days?"},
        ],
    )
    async with harness.worker():
        result = await (await start(harness, spec)).result()
    events = await read_all(harness, result.session_id)
    votes = [event for event in events if event.type == "VOTE"]
    assert lines(votes) == [
        'VOTE ada: {"ballot":"yes","reason":"I say so."}',
        'VOTE bob: {"ballot":"no","reason":"I like work."}',
        'VOTE cyd: {"ballot":"yes"}',
        'VOTE system: {"phase":"decision","counts":{"yes":2,"no":1},"winner":"yes"}',
    ]
    assert result.tally is not None
    assert (result.tally.counts, result.tally.winner) == ({"yes": 2, "no": 1}, "yes")
    assert result.summary == "Phase “decision”: 0 speeches.\nVote: yes 2, no 1; yes wins."
    service = EventLogService(harness.client.store)
    visible = await service.get_recent_events(result.session_id, 100)
    assert {event.type for event in visible} == {"SYSTEM", "SUMMARY"}
    transitions = [event.details for event in visible if event.action == "PHASE_TRANSITION"]
    assert transitions == [
        {"from": "opening", "to": "decision"},
        {"from": "decision", "to": "end"},
    ]


@pytest.mark.long
async def test_a_vote_without_a_majority_is_repeated_after_another_round(
    harness: ConversationHarness,
) -> None:
    spec = debate(
        harness.folder,
        {
            "ada": [PASS, ballot("yes"), PASS, ballot("yes")],
            "bob": [PASS, ballot("no"), wants(1), "Let it be.", ballot("yes")],
        },
        phases=[{"name": "decision", "end": "vote", "rounds": 9}],
    )
    async with harness.worker():
        result = await (await start(harness, spec)).result()
    tallies = [
        event.content
        for event in await read_all(harness, result.session_id)
        if event.type == "VOTE" and event.speaker == "system"
    ]
    assert tallies == [
        {"phase": "decision", "counts": {"yes": 1, "no": 1}},
        {"phase": "decision", "counts": {"yes": 2, "no": 0}, "winner": "yes"},
    ]


async def test_a_consensus_ends_a_phase_before_its_last_round(
    harness: ConversationHarness,
) -> None:
    spec = debate(
        harness.folder,
        {"ada": [wants(1), "I am for it.", PASS], "bob": [PASS, PASS]},
        phases=[{"name": "talk", "end": "consensus", "rounds": 9}],
    )
    async with harness.worker():
        result = await (await start(harness, spec)).result()
    events = await read_all(harness, result.session_id)
    assert [event.type for event in events].count("SPEECH") == 1
    assert (result.status, result.round) == ("finished", 2)


@pytest.mark.long
async def test_a_model_moderates(harness: ConversationHarness) -> None:
    grants = json.dumps({"grant": ["bob", "nobody", "ada"], "consensus": True})
    spec = debate(
        harness.folder,
        {
            "ada": [wants(9), "second"],
            "bob": [wants(1), "first"],
            "cyd": [wants(5)],
        },
        moderator=[f"I think this is best: {grants}", "They agree on everything."],
        policy="model",
        phases=[{"name": "talk", "end": "consensus", "rounds": 9, "speeches": 2}],
    )
    async with harness.worker():
        result = await (await start(harness, spec)).result()
    events = await read_all(harness, result.session_id)
    assert [event.text for event in events if event.type == "SPEECH"] == ["first", "second"]
    assert result.summary == "They agree on everything."
    [summary] = [event for event in events if event.type == "SUMMARY"]
    assert (summary.speaker, summary.to_json()["meta"]) == ("moderator", {"phase": "talk"})


@pytest.mark.long
async def test_a_moderator_that_fails_is_noted_and_a_policy_takes_its_place(
    harness: ConversationHarness,
) -> None:
    spec = debate(
        harness.folder,
        {"ada": [wants(1), "I spoke."]},
        moderator=["Let me think."],  # and its script has no more answers
        policy="model",
    )
    async with harness.worker():
        result = await (await start(harness, spec)).result()
    events = await read_all(harness, result.session_id)
    notes = [event.details for event in events if event.action == "PASSED_OVER"]
    assert [note["speaker"] for note in notes] == ["moderator", "moderator"]
    assert notes[0]["reason"] == "it did not say who should speak"
    assert "script_exhausted" in notes[1]["reason"]
    assert result.summary == "Phase “discussion”: 1 speech.\nada: I spoke."


@pytest.mark.long
async def test_round_robin_begins_where_it_ended(harness: ConversationHarness) -> None:
    both = [wants(9), "again"]
    spec = debate(
        harness.folder,
        {"ada": [*both, wants(9)], "bob": [wants(1), *both], "cyd": [wants(1), wants(1)]},
        policy="round_robin",
        phases=[{"name": "talk", "rounds": 2, "speeches": 1}],
    )
    async with harness.worker():
        result = await (await start(harness, spec)).result()
    events = await read_all(harness, result.session_id)
    assert [event.speaker for event in events if event.type == "SPEECH"] == ["ada", "bob"]


async def test_an_agent_that_fails_or_is_silent_is_noted_and_passed_over(
    harness: ConversationHarness,
) -> None:
    spec = debate(
        harness.folder,
        {
            "ada": [{"failures": [{"status": 401}] * 9, "content": "never"}],
            "bob": [wants(5), " "],
            "cyd": [wants(1), "I am here."],
        },
    )
    async with harness.worker():
        result = await (await start(harness, spec)).result()
    events = await read_all(harness, result.session_id)
    notes = {
        event.details["speaker"]: event.details["reason"]
        for event in events
        if event.action == "PASSED_OVER"
    }
    assert notes.keys() == {"ada", "bob"}
    assert [event.text for event in events if event.type == "SPEECH"] == ["I am here."]
    assert result.status == "finished"


@pytest.mark.long
async def test_a_turn_that_takes_too_long_is_interrupted(harness: ConversationHarness) -> None:
    spec = debate(
        harness.folder,
        {
            "ada": [{"content": "one two three", "chunk_delay": 60}],
            "bob": [wants(1), "I was quicker."],
        },
        limits={"turn_time": 2},
    )
    async with harness.worker():
        result = await (await start(harness, spec)).result()
    events = await read_all(harness, result.session_id)
    [note] = [event.details for event in events if event.action == "PASSED_OVER"]
    assert note == {"speaker": "ada", "reason": "it took more than 2 s"}
    assert [event.speaker for event in events if event.type == "SPEECH"] == ["bob"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"turns": 2}, "it has had 2 speeches"),
        ({"budget": 0.05}, "it has spent $0.0600 of $0.05"),
    ],
)
async def test_a_limit_ends_a_discussion_with_what_it_has(
    limits: dict[str, Any], reason: str, harness: ConversationHarness
) -> None:
    paid = {"usage": {"cost": 0.02, "prompt_tokens": 10}}
    wish = {"content": wants(1), **paid}
    spec = debate(
        harness.folder,
        {"ada": [wish, {"content": "speech", **paid}] * 9, "bob": [wish, "speech"] * 9},
        phases=[{"name": "one", "rounds": 9}, {"name": "two"}],
        limits=limits,
    )
    async with harness.worker():
        result = await (await start(harness, spec)).result()
    assert (result.status, result.reason) == ("finished", reason)
    events = await read_all(harness, result.session_id)
    assert [event.text for event in events if event.action][-1].endswith('"to":"end"}}')
    assert result.summary is not None
    assert result.tokens > 0
