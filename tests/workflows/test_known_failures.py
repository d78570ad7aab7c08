"""What other systems got wrong under crashes, damage and insistence; each as a test."""

import asyncio
from typing import Any

import pytest

from activities.transcripts import Transcripts
from agent.spec import Confirmation
from client.conversation import Conversation
from embedded.temporal import TemporalServer
from events.control import ConversationStateUpdateEvent, StuckEvent
from events.entry import Entry, Origin
from events.event import UnknownEvent, event_from
from events.messages import MessageEvent
from events.tools import (
    ActionEvent,
    AgentErrorEvent,
    ObservationEvent,
    UserRejectObservation,
)
from storage.errors import Damaged
from storage.keys import conversation_prefix, event_id, event_key
from storage.reader import LogReader
from tests.cli.command import Perdure, clean_environment
from tests.house import House, calls, hurry, kinds, says
from tests.workers import worker_process
from tests.workflows.watching import entries, events, growing, notes, seen, until, workspace

pytestmark = pytest.mark.long

ALWAYS = Confirmation(policy="always")


@pytest.fixture
def environment(house: House, temporal_server: TemporalServer) -> dict[str, str]:
    return {
        "TEMPORAL_ADDRESS": temporal_server.address,
        "PERDURE_STORE": f"file://{house.folder / 'store'}",
        "PERDURE_DATA": str(house.folder),
        "PERDURE_TASK_QUEUE": house.client.task_queue,
    }


async def test_no_said_after_the_worker_that_asked_was_killed_never_runs_the_action(
    house: House, environment: dict[str, str]
) -> None:
    spec = house.spec(
        calls(("charge", {"amount": 5, "seconds": 0})), says("I will not."), confirmation=ALWAYS
    )
    with worker_process(environment, house.folder / "one.log") as one:
        talk = await house.client.start("charge", spec)
        await until(talk, "waiting_for_confirmation")
        one.kill()
        await talk.send("No!", message_id="m")
        async with house.worker():
            state = await talk.finished("m")
    assert state.status == "finished"
    [rejected] = await events(talk, UserRejectObservation)
    assert "new message" in rejected.rejection_reason
    assert not notes(house, talk, "charged")


async def test_a_consent_outlives_the_worker_that_took_it_and_the_action_runs_once(
    house: House, environment: dict[str, str]
) -> None:
    """The call before it in the batch holds it up until the worker is dead."""
    batch = calls(("meet", {"name": "a", "other": "b"}), ("charge", {"amount": 5, "seconds": 0}))
    spec = house.spec(batch, says("done"), confirmation=ALWAYS, heartbeat_timeout=1)
    with worker_process(environment, house.folder / "one.log") as one:
        talk = await house.client.start("charge", spec)
        now = await until(talk, "waiting_for_confirmation")
        await talk.respond(True, [call.tool_call_id for call in now.pending])
        await seen((workspace(house, talk) / "a").exists)
        one.kill()
        assert not notes(house, talk, "charged")
        (workspace(house, talk) / "b").touch()
        async with house.worker():
            await until(talk, "finished")
    assert notes(house, talk, "charged") == ["5"]
    assert kinds(await entries(talk)).count("ObservationEvent") == 2


async def test_a_message_that_came_during_a_lost_call_of_the_model_is_seen_by_it(
    house: House, environment: dict[str, str]
) -> None:
    slow = calls(("add", {"a": 1, "b": 1}), content="Let me see.", chunk_delay=60)
    spec = house.spec(slow, says("done"), heartbeat_timeout=1)
    with worker_process(environment, house.folder / "one.log") as one:
        talk = await house.client.start("go", spec)
        await growing(talk, "llm.chat", "Let")
        await talk.send("and be quick", message_id="m")
        one.kill()
        hurry(spec)
        async with house.worker():
            await talk.finished("m")
    log = await entries(talk)
    assert kinds(log)[3:] == [
        "MessageEvent",
        "ActionEvent",  # of the call that was made again, for the prompt as it was
        "MessageEvent",
        "ObservationEvent",
        "MessageEvent",
    ]
    prompt = await Transcripts(0).of(talk.log, log[-1].seq, ())
    assert [said["content"] for said in prompt.messages() if said["role"] == "user"] == [
        "go",
        "and be quick",
    ]


async def test_a_call_that_was_done_is_not_made_again_when_its_sibling_is_lost(
    house: House, environment: dict[str, str]
) -> None:
    both = calls(
        ("deposit", {"account": "a", "seconds": 0}), ("deposit", {"account": "b", "seconds": 60})
    )
    spec = house.spec(both, says("I will check."), heartbeat_timeout=1)
    with worker_process(environment, house.folder / "one.log") as one:
        talk = await house.client.start("deposit", spec)
        await seen(lambda: bool(notes(house, talk, "b")))
        async with asyncio.timeout(60):
            while not await events(talk, ObservationEvent):
                await asyncio.sleep(0.02)
        one.kill()
        async with house.worker():
            state = await talk.finished()
    assert notes(house, talk, "a") == notes(house, talk, "b") == ["1"]
    first, second = await events(talk, ActionEvent)
    done, lost = await events(talk, ObservationEvent, AgentErrorEvent)
    assert (done.kind, done.action_id) == ("ObservationEvent", first.id)
    assert (lost.classification, lost.action_id) == ("outcome_unknown", second.id)
    assert state.status == "finished"


async def test_what_the_system_tells_an_agent_in_circles_does_not_hide_that_it_is(
    house: House,
) -> None:
    """It is told after the third failure and stopped at the fourth; a person starts it over."""
    wrong = calls(("stumble", {}))
    async with house.worker():
        talk = await house.client.start("go", house.spec(*[wrong] * 8, says("I see.")))
        assert (await talk.finished()).status == "stuck"
        told = await entries(talk)
        await talk.resume()
        assert (await talk.finished(after=len(told))).status == "stuck"
        await talk.send("Stop that.", message_id="m")
        state = await talk.finished("m")
    judged, stuck = told[-1].seq, told[-1].event
    assert isinstance(stuck, StuckEvent)
    failures = [one.seq for one in told if isinstance(one.event, ActionEvent | AgentErrorEvent)]
    assert (stuck.pattern, stuck.count) == ("action_error", 4)
    assert (stuck.first_seq, stuck.last_seq) == (failures[0], failures[-1])
    [nudge] = [one.seq for one in told if is_nudge(one)]
    assert failures[5] < nudge < failures[6] < judged
    assert kinds(await entries(talk)).count("StuckEvent") == 2
    assert (state.status, state.answers) == ("finished", 9)


def is_nudge(entry: Entry) -> bool:
    return isinstance(entry.event, MessageEvent) and entry.event.source == "environment"


async def test_an_event_of_a_newer_kind_is_kept_and_shown_and_the_conversation_goes_on(
    house: House, environment: dict[str, str]
) -> None:
    async with house.worker():
        spec = house.spec(says("one"), says("two"), idle_timeout=0.1)
        talk = await house.client.start("hi", spec)
        await talk.handle.result()
        newer = await dreamt(talk)
        await talk.send("again", message_id="m")
        state = await talk.finished("m")
    log = await entries(talk)
    assert log[newer.seq] == newer
    opened = log[newer.seq + 1].event
    assert isinstance(opened, ConversationStateUpdateEvent)
    assert opened.key == "opened"
    assert (state.answers, state.next_seq) == (2, len(log))
    shown = await shows(environment, talk)
    assert shown.code == 0, shown
    assert "DreamEvent {" in shown.out
    assert '"sheep": 7' in shown.out


async def dreamt(talk: Conversation) -> Entry:
    """What a newer writer appended to the log."""
    seq, newest = await talk.log.end(), (await talk.log.newest(1))[0]
    event = event_from(
        {
            "id": event_id(talk.id, seq),
            "kind": "DreamEvent",
            "source": "environment",
            "timestamp": newest.event.timestamp,
            "sheep": 7,
        }
    )
    assert isinstance(event, UnknownEvent)
    origin = Origin(run=newest.origin.run, activity="of a newer writer")
    [written] = await talk.log.append([event], base=seq, origin=origin)
    return written


async def test_a_damaged_object_is_named_and_all_others_are_read(
    house: House, environment: dict[str, str]
) -> None:
    async with house.worker():
        spec = house.spec(calls(("add", {"a": 2, "b": 3})), says("five"), says("still here"))
        talk = await house.client.start("2 + 3?", spec)
        await talk.finished()
        whole = await entries(talk)
        key = conversation_prefix("local", talk.id) + event_key(talk.id, 5)
        await house.client.store.replace(key, whole[5].body[:-1])
    slots = await LogReader(house.client.store, "local", talk.id).readable(0, 100)
    assert isinstance(slots[5], Damaged)
    assert [slot for slot in slots if slot.seq != 5] == [one for one in whole if one.seq != 5]
    shown = await shows(environment, talk)
    assert shown.code == 1
    assert "The object of seq 5 is damaged" in shown.out
    for seq in range(len(whole)):
        assert f"\n{seq:>6}  " in f"\n{shown.out}"


async def shows(environment: dict[str, str], talk: Conversation) -> Any:
    """What `perdure show` says of it."""
    return await Perdure({**clean_environment(), **environment})("show", talk.id)
