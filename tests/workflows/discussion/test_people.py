"""People in a discussion: what they say and vote, and what is refused."""

import asyncio
from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError

from perdure.client.discussion.discussions import Discussions
from tests.harness import ConversationHarness
from tests.workflows.discussion.debate import (
    PASS,
    ballot,
    debate,
    lines,
    paused_debate,
    read_all,
    start,
)


async def test_people_speak_and_vote_and_learn_where_it_stands(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        handle = await paused_debate(
            harness, [PASS, ballot("no")], phases=[{"name": "decision", "end": "vote"}]
        )
        said = asyncio.create_task(
            handle.execute_update("contribute", {"content": "I pay for it.", "speaker": "eve"})
        )
        vote = {"type": "VOTE", "content": "Yes", "speaker": "eve", "reason": "it is right"}
        await handle.signal("say", vote)
        await handle.signal("say", {**vote, "speaker": "fay"})
        await asyncio.sleep(0.2)
        await handle.signal("resume")
        place = await said
        result = await handle.result()
    events = await read_all(harness, result.session_id)
    assert (events[place - 1].type, events[place - 1].text) == ("SPEECH", "I pay for it.")
    of_people = [event for event in events if event.speaker in ("eve", "fay")]
    assert sorted(lines(of_people)) == [
        "SPEECH eve: I pay for it.",
        'VOTE eve: {"ballot":"Yes","reason":"it is right"}',
        'VOTE fay: {"ballot":"Yes","reason":"it is right"}',
    ]
    joined = [event.details["speaker"] for event in events if event.action == "JOINED"]
    assert sorted(joined) == ["eve", "fay"]
    assert result.tally is not None
    assert (result.tally.counts, result.tally.winner) == ({"yes": 2, "no": 1}, "yes")
    assert result.speeches == {"eve": 1}


async def test_what_a_person_repeats_with_an_id_is_recorded_once(
    harness: ConversationHarness,
) -> None:
    item = {"content": "Once.", "speaker": "eve", "id": "mine"}
    async with harness.worker():
        handle = await paused_debate(harness, [PASS])
        for _ in range(3):
            await handle.signal("say", item)
        await handle.signal("resume")
        result = await handle.result()
    events = await read_all(harness, result.session_id)
    assert lines(events).count("SPEECH eve: Once.") == 1


@pytest.mark.long
@pytest.mark.parametrize(
    "wrong",
    [
        {"content": "I am ada.", "speaker": "ada"},
        {"content": "I am the law.", "speaker": "moderator"},
        {"content": "", "speaker": "eve"},
        {"type": "SUMMARY", "content": "So be it.", "speaker": "eve"},
        "hello",
    ],
)
async def test_what_a_person_may_not_write_is_refused(
    wrong: Any, harness: ConversationHarness
) -> None:
    async with harness.worker():
        handle = await paused_debate(harness, [PASS])
        with pytest.raises(WorkflowUpdateFailedError):
            await handle.execute_update("contribute", wrong)
        await handle.signal("say", wrong)
        await handle.signal("resume")
        result = await handle.result()
    assert result.speeches == {}


async def test_nobody_speaks_for_an_agent_before_the_agents_are_known(
    harness: ConversationHarness,
) -> None:
    handle = await start(harness, debate(harness.folder, {"ada": [PASS]}))
    item = {"content": "I am ada.", "speaker": "ada"}
    await handle.signal("say", item)
    async with harness.worker():
        result = await handle.result()
    assert result.speeches == {}


@pytest.mark.long
async def test_what_people_said_counts_after_the_workflow_was_lost(
    harness: ConversationHarness,
) -> None:
    """Eve's ballot decides the vote; the workflow is lost behind it, and she repeats it."""
    answers: list[Any] = [PASS, {"content": ballot("no"), "delay": 2}]
    phases = [{"name": "decision", "end": "vote", "rounds": 1}]
    votes = [
        {"type": "VOTE", "content": "yes", "speaker": name, "id": name} for name in ("eve", "fay")
    ]
    async with harness.worker():
        handle = await paused_debate(harness, answers, phases=phases)
        placed = [asyncio.create_task(handle.execute_update("contribute", it)) for it in votes]
        await asyncio.sleep(0.2)
        await handle.signal("resume")
        places = [await place for place in placed]
        await handle.terminate("lost")
        session = handle.id.partition("-")[2]
        discussions = Discussions.from_client(harness.client)
        again = await discussions.start(await discussions.get(session).spec(), session)
        repeated = await again.vote("yes", "eve", contribution_id="eve")
        result = await again.result()
    assert repeated == places[0]
    assert result.tally is not None
    assert (result.tally.counts, result.tally.winner) == ({"yes": 2, "no": 1}, "yes")
    events = await read_all(harness, session)
    assert [event.speaker for event in events if event.type == "VOTE"].count("eve") == 1
