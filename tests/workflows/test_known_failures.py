"""Failures of other systems under crashes, damage and load, each as a test."""

import asyncio
from typing import Any

import pytest

from perdure.activities.support.transcript_cache import TranscriptCache
from perdure.agent.policies import Confirmation
from perdure.client.conversation import Conversation
from perdure.embedded.temporal import TemporalServer
from perdure.events.control import ConversationStateUpdateEvent, StuckEvent
from perdure.events.entry import Entry, Origin
from perdure.events.event import UnknownEvent, parse_event
from perdure.events.messages import MessageEvent
from perdure.events.tools import (
    ActionEvent,
    AgentErrorEvent,
    ObservationEvent,
    UserRejectObservation,
)
from perdure.storage.errors import Damaged
from perdure.storage.keys import conversation_prefix, event_id, event_key
from perdure.storage.log.reader import LogReader
from tests.cli.command import Perdure, clean_environment
from tests.harness import (
    ConversationHarness,
    event_kinds,
    remove_chunk_delay,
    text_answer,
    tool_call_answer,
)
from tests.workers import worker_process
from tests.workflows.watching import (
    entries,
    events,
    notes,
    wait_for_growth,
    wait_for_status,
    wait_until,
    workspace,
)

pytestmark = pytest.mark.long

ALWAYS = Confirmation(policy="always")


@pytest.fixture
def environment(harness: ConversationHarness, temporal_server: TemporalServer) -> dict[str, str]:
    return {
        "TEMPORAL_ADDRESS": temporal_server.address,
        "PERDURE_STORE": f"file://{harness.folder / 'store'}",
        "PERDURE_DATA": str(harness.folder),
        "PERDURE_TASK_QUEUE": harness.client.task_queue,
    }


async def test_a_rejection_after_the_worker_was_killed_never_runs_the_action(
    harness: ConversationHarness, environment: dict[str, str]
) -> None:
    spec = harness.spec(
        tool_call_answer(("charge", {"amount": 5, "seconds": 0})),
        text_answer("I will not."),
        confirmation=ALWAYS,
    )
    with worker_process(environment, harness.folder / "one.log") as worker:
        talk = await harness.client.start("charge", spec)
        await wait_for_status(talk, "waiting_for_confirmation")
        worker.kill()
        await talk.send("No!", message_id="m")
        async with harness.worker():
            state = await talk.wait_for_turn("m")
    assert state.status == "finished"
    [rejected] = await events(talk, UserRejectObservation)
    assert "new message" in rejected.rejection_reason
    assert not notes(harness, talk, "charged")


async def test_a_consent_outlives_the_worker_that_took_it_and_the_action_runs_once(
    harness: ConversationHarness, environment: dict[str, str]
) -> None:
    """The call before it in the batch holds it up until the worker is dead."""
    batch = tool_call_answer(
        ("meet", {"name": "a", "other": "b"}), ("charge", {"amount": 5, "seconds": 0})
    )
    spec = harness.spec(batch, text_answer("done"), confirmation=ALWAYS, heartbeat_timeout=1)
    with worker_process(environment, harness.folder / "one.log") as worker:
        talk = await harness.client.start("charge", spec)
        now = await wait_for_status(talk, "waiting_for_confirmation")
        await talk.respond(True, [call.tool_call_id for call in now.pending])
        await wait_until((workspace(harness, talk) / "a").exists)
        worker.kill()
        assert not notes(harness, talk, "charged")
        (workspace(harness, talk) / "b").touch()
        async with harness.worker():
            await wait_for_status(talk, "finished")
    assert notes(harness, talk, "charged") == ["5"]
    assert event_kinds(await entries(talk)).count("ObservationEvent") == 2


async def test_a_message_that_came_during_a_lost_call_of_the_model_is_seen_by_it(
    harness: ConversationHarness, environment: dict[str, str]
) -> None:
    slow = tool_call_answer(("add", {"a": 1, "b": 1}), content="Let me see.", chunk_delay=60)
    spec = harness.spec(slow, text_answer("done"), heartbeat_timeout=1)
    with worker_process(environment, harness.folder / "one.log") as worker:
        talk = await harness.client.start("go", spec)
        await wait_for_growth(talk, "llm.chat", "Let")
        await talk.send("and be quick", message_id="m")
        worker.kill()
        remove_chunk_delay(spec)
        async with harness.worker():
            await talk.wait_for_turn("m")
    log = await entries(talk)
    assert event_kinds(log)[3:] == [
        "MessageEvent",
        "ActionEvent",  # of the call that was made again, for the prompt as it was
        "MessageEvent",
        "ObservationEvent",
        "MessageEvent",
    ]
    prompt = await TranscriptCache(0).load(talk.log, log[-1].seq, ())
    assert [message["content"] for message in prompt.messages() if message["role"] == "user"] == [
        "go",
        "and be quick",
    ]


async def test_a_finished_call_is_not_repeated_when_its_sibling_is_lost(
    harness: ConversationHarness, environment: dict[str, str]
) -> None:
    both = tool_call_answer(
        ("deposit", {"account": "a", "seconds": 0}), ("deposit", {"account": "b", "seconds": 60})
    )
    spec = harness.spec(both, text_answer("I will check."), heartbeat_timeout=1)
    with worker_process(environment, harness.folder / "one.log") as worker:
        talk = await harness.client.start("deposit", spec)
        await wait_until(lambda: bool(notes(harness, talk, "b")))
        async with asyncio.timeout(60):
            while not await events(talk, ObservationEvent):
                await asyncio.sleep(0.02)
        worker.kill()
        async with harness.worker():
            state = await talk.wait_for_turn()
    assert notes(harness, talk, "a") == notes(harness, talk, "b") == ["1"]
    first, second = await events(talk, ActionEvent)
    done, lost = await events(talk, ObservationEvent, AgentErrorEvent)
    assert (done.kind, done.action_id) == ("ObservationEvent", first.id)
    assert (lost.classification, lost.action_id) == ("outcome_unknown", second.id)
    assert state.status == "finished"


async def test_nudges_do_not_hide_that_an_agent_is_stuck(
    harness: ConversationHarness,
) -> None:
    """A nudge comes after the third failure, a stop at the fourth; a person starts it over."""
    wrong = tool_call_answer(("stumble", {}))
    async with harness.worker():
        talk = await harness.client.start("go", harness.spec(*[wrong] * 8, text_answer("I see.")))
        assert (await talk.wait_for_turn()).status == "stuck"
        log = await entries(talk)
        await talk.resume()
        assert (await talk.wait_for_turn(after=len(log))).status == "stuck"
        await talk.send("Stop that.", message_id="m")
        state = await talk.wait_for_turn("m")
    judged, stuck = log[-1].seq, log[-1].event
    assert isinstance(stuck, StuckEvent)
    failures = [item.seq for item in log if isinstance(item.event, ActionEvent | AgentErrorEvent)]
    assert (stuck.pattern, stuck.count) == ("action_error", 4)
    assert (stuck.first_seq, stuck.last_seq) == (failures[0], failures[-1])
    [nudge] = [item.seq for item in log if is_nudge(item)]
    assert failures[5] < nudge < failures[6] < judged
    assert event_kinds(await entries(talk)).count("StuckEvent") == 2
    assert (state.status, state.response_count) == ("finished", 9)


def is_nudge(entry: Entry) -> bool:
    return isinstance(entry.event, MessageEvent) and entry.event.source == "environment"


async def test_an_event_of_a_newer_kind_is_kept_and_shown_and_the_conversation_goes_on(
    harness: ConversationHarness, environment: dict[str, str]
) -> None:
    async with harness.worker():
        spec = harness.spec(text_answer("one"), text_answer("two"), idle_timeout=0.1)
        talk = await harness.client.start("hi", spec)
        await talk.handle.result()
        newer = await add_unknown_event(talk)
        await talk.send("again", message_id="m")
        state = await talk.wait_for_turn("m")
    log = await entries(talk)
    assert log[newer.seq] == newer
    opened = log[newer.seq + 1].event
    assert isinstance(opened, ConversationStateUpdateEvent)
    assert opened.key == "opened"
    assert (state.response_count, state.next_seq) == (2, len(log))
    page = await run_show(environment, talk)
    assert page.code == 0, page
    assert "DreamEvent {" in page.out
    assert '"sheep": 7' in page.out


async def add_unknown_event(talk: Conversation) -> Entry:
    """Append an event of a newer version."""
    seq, newest = await talk.log.end(), (await talk.log.read_newest(1))[0]
    event = parse_event(
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
    harness: ConversationHarness, environment: dict[str, str]
) -> None:
    async with harness.worker():
        spec = harness.spec(
            tool_call_answer(("add", {"a": 2, "b": 3})),
            text_answer("five"),
            text_answer("still here"),
        )
        talk = await harness.client.start("2 + 3?", spec)
        await talk.wait_for_turn()
        whole = await entries(talk)
        key = conversation_prefix("local", talk.id) + event_key(talk.id, 5)
        await harness.client.store.replace(key, whole[5].body[:-1])
    slots = await LogReader(harness.client.store, "local", talk.id).read_slots(0, 100)
    assert isinstance(slots[5], Damaged)
    assert [slot for slot in slots if slot.seq != 5] == [item for item in whole if item.seq != 5]
    page = await run_show(environment, talk)
    assert page.code == 1
    assert "The object of seq 5 is damaged" in page.out
    for seq in range(len(whole)):
        assert f"\n{seq:>6}  " in f"\n{page.out}"


async def run_show(environment: dict[str, str], talk: Conversation) -> Any:
    """Return the output of `perdure show`."""
    return await Perdure({**clean_environment(), **environment})("show", talk.id)
