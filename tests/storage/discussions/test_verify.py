"""Verification and deletion of a discussion's objects."""

import json

import pytest

from perdure.agent.discussion.spec import parse_discussion
from perdure.storage.discussions.folder import save_spec
from perdure.storage.discussions.purge import purge_session
from perdure.storage.discussions.service import EventLogService
from perdure.storage.discussions.verify import verify_discussion
from perdure.storage.store import list_keys
from tests.storage.discussions.session import FOLDER, SESSION, fill
from tests.storage.memory import MemoryStore


async def filled() -> MemoryStore:
    """Return a store with a discussion of 58 events, of which two prunings took some away."""
    store = MemoryStore()
    spec = parse_discussion({"topic": "Tea?", "agents": [{"id": "agent-1", "model": "m"}]})
    await save_spec(store, "local", SESSION, spec)
    service = EventLogService(store)
    await fill(service, 30)
    await service.append_event(SESSION, "SUMMARY", "moderator", "So far.", event_id="mine")
    await service.prune_events(SESSION, {"type": "byCount", "keep": 20})
    await fill(service, 27)
    await service.prune_events(SESSION, {"type": "byType", "keepTypes": ["SUMMARY"]})
    return store


async def test_a_whole_discussion_has_no_fault_and_each_damaged_object_is_named() -> None:
    store = await filled()
    whole = await verify_discussion(store, "local", SESSION)
    assert (whole.events, whole.findings) == (58, [])
    names = [key async for key in list_keys(store, FOLDER)]
    assert {name.removeprefix(FOLDER).partition("/")[0] for name in names} == {
        *("archive", "events", "ids", "spec.json", "state.json")
    }
    for key in names:
        body = await store.read(key) or b""
        await store.replace(key, body[:-20])
        findings = (await verify_discussion(store, "local", SESSION)).findings
        assert key in [finding.key for finding in findings], key
        await store.replace(key, body)
    for sequence in (1, 30, 57):
        key = f"{FOLDER}events/{sequence:06}.json"
        body = await store.read(key) or b""
        await store.delete(key)
        findings = (await verify_discussion(store, "local", SESSION)).findings
        assert [(it.kind, it.seq) for it in findings if it.key == key] == [("missing", sequence)]
        await store.replace(key, body)
    assert (await verify_discussion(store, "local", SESSION)).findings == []


async def test_whole_objects_in_a_wrong_place_are_found() -> None:
    store, other = await filled(), MemoryStore()
    await fill(EventLogService(other), 5)
    key = f"{FOLDER}events/000004.json"
    await store.replace(key, await other.read(key) or b"")
    findings = (await verify_discussion(store, "local", SESSION)).findings
    assert ("altered", 5) in [(it.kind, it.seq) for it in findings]
    store = await filled()
    state = json.loads(await store.read(f"{FOLDER}state.json") or b"")
    await store.replace(f"{FOLDER}state.json", json.dumps({**state, "visible": []}).encode())
    [finding] = (await verify_discussion(store, "local", SESSION)).findings
    assert (finding.kind, finding.key) == ("beside", f"{FOLDER}state.json")
    store = await filled()
    body = await store.read(f"{FOLDER}archive/000001.json") or b""
    await store.replace(f"{FOLDER}archive/000002.json", body)
    findings = (await verify_discussion(store, "local", SESSION)).findings
    assert f"{FOLDER}archive/000002.json" in [it.key for it in findings]


async def test_a_discussion_is_deleted_and_nothing_else() -> None:
    store = await filled()
    await EventLogService(store).append_event("session-1234", "INTENT", "agent-1", "Another.")
    count = len([key async for key in list_keys(store, FOLDER)])
    assert await purge_session(store, "local", SESSION) == count
    assert [key async for key in list_keys(store, FOLDER)] == []
    assert (await verify_discussion(store, "local", "session-1234")).events == 1
    with pytest.raises(ValueError, match="discussion"):
        await purge_session(store, "local", "../x")
