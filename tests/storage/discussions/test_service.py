"""The service of the shared log, on every store: its specification's examples and its rules."""
# ruff: noqa: RUF001 - an example is Chinese

import asyncio
import json
from typing import Any

import pytest

from perdure.agent.discussion.pruning import BeforeSequence, ByCount
from perdure.errors import Conflict, Forbidden, Invalid
from perdure.events.discussion import DiscussionEvent, DiscussionEventType
from perdure.storage.discussions.service import EventLogService
from perdure.storage.store import Store
from tests.storage.discussions.session import FOLDER, SESSION, fill, sequences
from tests.storage.memory import MemoryStore


async def speak(service: EventLogService, speaker: str, text: str) -> DiscussionEvent:
    await service.grant_speech(SESSION, speaker)
    return await service.append_event(SESSION, "SPEECH", speaker, text)


async def test_an_appended_event_has_its_session_its_place_and_a_new_id(store: Store) -> None:
    service = EventLogService(store)
    await service.grant_speech(SESSION, "agent-1")
    event = await service.append_event(
        SESSION, "SPEECH", "agent-1", "我认为这个方案是可行的...", {"round": 2}
    )
    assert (event.session_id, event.sequence, event.type) == (SESSION, 2, "SPEECH")
    assert event.to_json()["meta"] == {"round": 2}
    assert len(event.event_id) == 36
    assert event.timestamp.endswith("Z")


async def test_an_event_is_one_object_under_its_session(store: Store) -> None:
    event = await EventLogService(store).append_event(SESSION, "INTENT", "agent-1", "may I?")
    assert await store.list(f"{FOLDER}events/") == [f"{FOLDER}events/000001.json"]
    body = await store.read(f"{FOLDER}events/000001.json")
    fields = json.loads(body or b"")
    assert fields.pop("origin")["checksum"]
    assert fields == {"kind": "DiscussionEvent", **event.to_json()}


async def test_the_reading_examples_of_the_specification_run(store: Store) -> None:
    service = EventLogService(store)
    for n in range(30):
        await speak(service, "agent-1", f"speech {n}")
    await service.append_event(SESSION, "SUMMARY", "moderator", "so far")
    assert sequences(await service.get_recent_events(SESSION, 10)) == list(range(52, 62))
    assert sequences(await service.get_events_by_type(SESSION, "SUMMARY", 5)) == [61]
    assert sequences(await service.get_events_after_sequence(SESSION, 50, 20)) == list(
        range(51, 62)
    )
    visible = await service.get_agent_visible_events(SESSION, 15)
    assert len(visible) == 15
    assert visible[-2].model_dump().keys() == {"type", "speaker", "content", "timestamp"}
    assert visible[0].content == '{"action":"GRANT","details":{"speaker":"agent-1"}}'


async def test_a_phase_ends_as_in_the_specification(store: Store) -> None:
    service = EventLogService(store)
    await speak(service, "agent-1", "I am for it.")
    await service.append_event(
        session_id=SESSION,
        type="SUMMARY",
        speaker="moderator",
        content="第一阶段讨论要点：1) 技术方案可行 2) 成本需要优化 3) 时间表待定",
        meta={"phase": "phase-1-summary"},
    )
    await service.append_event(
        session_id=SESSION,
        type="SYSTEM",
        speaker="system",
        content={"action": "PHASE_TRANSITION", "details": {"from": "phase-1", "to": "phase-2"}},
    )
    await service.prune_events(SESSION, {"type": "byType", "keepTypes": ["SUMMARY", "SYSTEM"]})
    kept = await service.get_recent_events(SESSION, 100)
    assert [event.type for event in kept] == ["SYSTEM", "SUMMARY", "SYSTEM"]
    await service.prune_events(SESSION, {"type": "byCount", "keep": 1})
    [last] = await service.get_recent_events(SESSION, 100)
    assert (last.action, last.details) == ("PHASE_TRANSITION", {"from": "phase-1", "to": "phase-2"})


async def test_pruned_events_stay_and_are_read_back_from_the_archive(store: Store) -> None:
    service = EventLogService(store)
    await fill(service, 12)
    assert await service.prune_events(SESSION, BeforeSequence(sequence=4)) is not None
    assert await service.prune_events(SESSION, ByCount(keep=4)) is not None
    assert await service.prune_events(SESSION, ByCount(keep=4)) is None
    reader = EventLogService(store)
    assert sequences(await reader.get_recent_events(SESSION, 100)) == [9, 10, 11, 12]
    assert sequences(await reader.get_events_after_sequence(SESSION, 0, 2)) == [9, 10]
    assert sequences(await reader.get_archived_events(SESSION, 2, 5)) == [3, 4, 5, 6, 7]
    manifest = await reader.get_archive(SESSION, 10)
    assert [(it.number, it.ranges) for it in manifest] == [(1, ((1, 3),)), (2, ((4, 8),))]
    assert await reader.get_archive(SESSION, 10, after=1) == manifest[1:]


@pytest.mark.parametrize("limit", [0, 101, -1, None, "all", True, 2.5])
async def test_a_reading_without_a_limit_up_to_100_is_refused(limit: Any) -> None:
    service = EventLogService(MemoryStore())
    for call in (
        lambda: service.get_recent_events(SESSION, limit),
        lambda: service.get_events_by_type(SESSION, "SPEECH", limit),
        lambda: service.get_events_after_sequence(SESSION, 0, limit),
        lambda: service.get_agent_visible_events(SESSION, limit),
        lambda: service.get_archived_events(SESSION, 0, limit),
        lambda: service.get_archive(SESSION, limit),
    ):
        with pytest.raises(Invalid, match="no limit"):
            await call()


def test_no_reading_has_a_default_limit() -> None:
    for name in ("get_recent_events", "get_events_by_type", "get_agent_visible_events"):
        with pytest.raises(TypeError, match="limit"):
            getattr(EventLogService(MemoryStore()), name)(SESSION, *["SPEECH"] * ("type" in name))


@pytest.mark.parametrize(
    ("type_", "speaker"),
    [
        ("SUMMARY", "agent-1"),
        ("SYSTEM", "agent-1"),
        ("SPEECH", "agent-1"),
        ("SPEECH", "moderator"),
        ("INTENT", "moderator"),
        ("VOTE", "moderator"),
        ("SYSTEM", "moderator"),
        ("SPEECH", "system"),
        ("INTENT", "system"),
        ("SUMMARY", "system"),
    ],
)
async def test_what_a_speaker_may_not_write_is_refused(
    type_: DiscussionEventType, speaker: str
) -> None:
    store = MemoryStore()
    with pytest.raises(Forbidden):
        await EventLogService(store).append_event(SESSION, type_, speaker, "hear me")
    assert await store.list("users/") == []


@pytest.mark.parametrize(
    ("type_", "speaker"),
    [
        ("INTENT", "agent-1"),
        ("VOTE", "agent-1"),
        ("VOTE", "system"),
        ("SYSTEM", "system"),
        ("SUMMARY", "moderator"),
    ],
)
async def test_what_a_speaker_may_write_is_written(
    type_: DiscussionEventType, speaker: str
) -> None:
    event = await EventLogService(MemoryStore()).append_event(SESSION, type_, speaker, "hear me")
    assert event.sequence == 1


async def test_a_grant_is_for_one_speech_of_one_agent(store: Store) -> None:
    service = EventLogService(store)
    await service.grant_speech(SESSION, "agent-1")
    with pytest.raises(Forbidden, match="agent-2 has no grant"):
        await service.append_event(SESSION, "SPEECH", "agent-2", "me too")
    await service.append_event(SESSION, "SPEECH", "agent-1", "my turn")
    with pytest.raises(Forbidden, match="agent-1 has no grant"):
        await service.append_event(SESSION, "SPEECH", "agent-1", "and again")


async def test_two_writers_cannot_use_one_grant_twice(store: Store) -> None:
    await EventLogService(store).grant_speech(SESSION, "agent-1")
    services = [EventLogService(store) for _ in range(8)]
    done = await asyncio.gather(
        *(it.append_event(SESSION, "SPEECH", "agent-1", "mine") for it in services),
        return_exceptions=True,
    )
    assert sum(isinstance(it, DiscussionEvent) for it in done) == 1
    assert sum(isinstance(it, Forbidden) for it in done) == 7


async def test_an_agent_that_was_passed_over_has_no_grant_any_more(store: Store) -> None:
    service = EventLogService(store)
    await service.grant_speech(SESSION, "agent-1")
    content = {"action": "PASSED_OVER", "details": {"speaker": "agent-1", "reason": "silent"}}
    await service.append_event(SESSION, "SYSTEM", "system", content)
    with pytest.raises(Forbidden):
        await service.append_event(SESSION, "SPEECH", "agent-1", "too late")


async def test_a_session_that_names_its_agents_takes_no_others(store: Store) -> None:
    service = EventLogService(store)
    content: dict[str, Any] = {"action": "OPENED", "details": {"agents": ["ada", "bob"]}}
    await service.append_event(SESSION, "SYSTEM", "system", content)
    await service.append_event(SESSION, "INTENT", "ada", "I would like to")
    with pytest.raises(Forbidden, match="mallory takes no part"):
        await service.append_event(SESSION, "VOTE", "mallory", {"ballot": "yes"})
    content = {"action": "JOINED", "details": {"speaker": "mallory"}}
    await service.append_event(SESSION, "SYSTEM", "system", content)
    await service.append_event(SESSION, "VOTE", "mallory", {"ballot": "yes"})


async def test_writers_at_once_lose_and_double_nothing_and_leave_no_gap(store: Store) -> None:
    services = [EventLogService(store) for _ in range(4)]

    async def write(nth: int, service: EventLogService) -> None:
        for n in range(10):
            await service.append_event(SESSION, "INTENT", f"agent-{nth}", f"{nth}.{n}")

    await asyncio.gather(*(write(*pair) for pair in enumerate(services)))
    events = await EventLogService(store).get_recent_events(SESSION, 100)
    assert sequences(events) == list(range(1, 41))
    assert sorted(event.text for event in events) == sorted(
        f"{nth}.{n}" for nth in range(4) for n in range(10)
    )
    for nth in range(4):
        mine = [event.text for event in events if event.speaker == f"agent-{nth}"]
        assert mine == [f"{nth}.{n}" for n in range(10)]


async def test_an_append_that_is_repeated_changes_nothing(store: Store) -> None:
    service = EventLogService(store)
    await service.grant_speech(SESSION, "agent-1")
    first = await service.append_event(SESSION, "SPEECH", "agent-1", "once", event_id="step-7")
    await fill(service, 3)
    for other in (service, EventLogService(store)):
        again = await other.append_event(SESSION, "SPEECH", "agent-1", "twice?", event_id="step-7")
        assert again == first
    assert len(await service.get_recent_events(SESSION, 100)) == 5


async def test_repeats_at_once_write_one_event(store: Store) -> None:
    services = [EventLogService(store) for _ in range(6)]
    events = await asyncio.gather(
        *(it.append_event(SESSION, "INTENT", "a", "now", event_id="one") for it in services)
    )
    assert {event.sequence for event in events} == {1}
    assert len(await services[0].get_recent_events(SESSION, 100)) == 1


async def test_an_id_of_another_event_is_a_conflict(store: Store) -> None:
    service = EventLogService(store)
    await service.append_event(SESSION, "INTENT", "agent-1", "may I?", event_id="one")
    with pytest.raises(Conflict):
        await service.append_event(SESSION, "VOTE", "agent-1", "yes", event_id="one")


async def test_a_session_of_over_500_prunes_itself_and_keeps_every_summary() -> None:
    service = EventLogService(MemoryStore())
    for n in range(600):
        if n % 100 == 7:
            await service.append_event(SESSION, "SUMMARY", "moderator", f"summary {n}")
        await service.append_event(SESSION, "INTENT", "agent-1", f"{n}")
    summaries = await service.get_events_by_type(SESSION, "SUMMARY", 100)
    assert [event.text for event in summaries] == [f"summary {n}" for n in range(7, 600, 100)]
    first = await service.get_events_after_sequence(SESSION, 0, 100)
    assert sequences(first)[0] == summaries[0].sequence
    prunings = await service.get_archive(SESSION, 10)
    assert [pruning.policy.type for pruning in prunings] == ["automatic", "automatic"]
    assert [len(list(pruning.sequences())) for pruning in prunings] == [101, 101]
    archived = await service.get_archived_events(SESSION, 0, 100)
    assert "SUMMARY" not in {event.type for event in archived}


async def test_users_and_sessions_are_apart(store: Store) -> None:
    await EventLogService(store, "ann").append_event(SESSION, "INTENT", "a", "of ann")
    assert await EventLogService(store, "bea").get_recent_events(SESSION, 5) == []
    assert await EventLogService(store, "ann").get_recent_events("other", 5) == []


@pytest.mark.parametrize("session", ["", "../x", "a/b", ".", "x" * 129])
async def test_a_bad_session_id_is_refused(session: str) -> None:
    with pytest.raises(Invalid):
        await EventLogService(MemoryStore()).get_recent_events(session, 5)


async def test_half_a_surrogate_pair_is_stored_as_a_question_mark(store: Store) -> None:
    service = EventLogService(store)
    event = await service.append_event(SESSION, "INTENT", "agent-1", "half \ud83d")
    assert event.content == "half ?"
    assert await EventLogService(store).get_recent_events(SESSION, 1) == [event]
