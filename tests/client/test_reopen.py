"""Conversations brought back from their logs alone."""

import uuid

import pytest
import temporalio.client

from client.client import Client
from client.errors import NotFound
from client.fork import fork
from client.ids import new_conversation_id
from client.reopen import Reopened, reopen, reopen_all
from embedded.temporal import TemporalServer
from storage.keys import conversation_prefix, event_key
from tests.client.test_search import a_namespace
from tests.house import House, calls, says
from tests.left_behind import OUTCOMES, LeftBehind, go_on, is_fenced, left_behind, let_go_on
from tests.workers import worker_process
from tests.workflows.watching import entries, notes, seen, until


async def elsewhere(house: House) -> House:
    """The same store, and a Temporal that knows nothing of it."""
    fresh = await a_namespace(house.client.temporal)
    client = Client(fresh, house.client.store, task_queue=f"new-{uuid.uuid4()}")
    return House(client, house.world, house.folder)


async def everything(client: Client) -> dict[str, Reopened]:
    return {one.conversation_id: one async for one in reopen_all(client)}


def by_name(there: LeftBehind, told: dict[str, Reopened]) -> dict[str, str]:
    assert len(told) == len(OUTCOMES)
    return {name: told[getattr(there, name).id].outcome for name in OUTCOMES}


@pytest.mark.long
async def test_every_conversation_goes_on_from_its_log_and_no_zombie_writes_into_it(
    house: House, temporal_server: TemporalServer
) -> None:
    environment = {
        "TEMPORAL_ADDRESS": temporal_server.address,
        "PERDURE_STORE": f"file://{house.folder / 'store'}",
        "PERDURE_DATA": str(house.folder),
        "PERDURE_TASK_QUEUE": house.client.task_queue,
    }
    with worker_process(environment, house.folder / "zombie.log") as zombie:
        old = await left_behind(house)
        zombie.freeze()
        for one in old.all():
            if await one.remote.is_alive():
                await one.handle.terminate("so that a zombie is told of nothing")
        before = await old.logs()
        await let_go_on(old)
        new = await elsewhere(house)
        there = old.in_the_hands_of(new.client)
        async with new.worker():
            assert by_name(there, await everything(new.client)) == OUTCOMES
            await go_on(new, there, before)
            after = await there.logs()
            zombie.thaw()
            for one in (there.charging, there.child):
                await seen(lambda one=one: is_fenced(zombie, one))  # type: ignore[misc]
            assert await there.logs() == after


async def test_what_runs_is_left_alone(house: House) -> None:
    spec = house.spec(calls(("charge", {"amount": 5, "seconds": 600})), says("charged"))
    async with house.worker():
        talk = await house.client.start("charge", spec)
        await seen(lambda: bool(notes(house, talk, "charged")))
        before = await entries(talk)
        assert await reopen(house.client, talk.id) == Reopened(talk.id, "running", "running")
        assert await entries(talk) == before
        await talk.close()
        await talk.handle.result()
    assert await reopen(house.client, talk.id) == Reopened(talk.id, "closed", "closed")


async def test_a_fork_that_nobody_has_begun_is_left_alone(house: House) -> None:
    spec = house.spec(calls(("charge", {"amount": 5, "seconds": 600})), says("charged"))
    async with house.worker():
        talk = await house.client.start("charge", spec)
        await seen(lambda: bool(notes(house, talk, "charged")))
        forked = (await fork(house.client, talk.id)).conversation
        told = await reopen(house.client, forked.id)
        assert (told.outcome, told.status) == ("at_rest", "running")
        assert told.reason is not None
        assert "nobody has begun" in told.reason
        await forked.resume()
        await until(forked, "finished")
        await talk.close()
        await talk.handle.result()
    assert (await reopen(house.client, forked.id)).outcome == "at_rest"


async def test_a_damaged_log_is_named_and_the_others_go_on(house: House) -> None:
    async with house.worker():
        one, two = [await house.client.start("hi", house.spec(says("hello"))) for _ in range(2)]
        await until(one, "finished")
        await until(two, "finished")
    prefix = conversation_prefix("local", one.id)
    store = house.client.store
    await store.replace(prefix + "base_state.json", b"{}")
    await store.replace(prefix + event_key(one.id, 1), b"{")
    told = await everything(Client(house.client.temporal, store, task_queue="nobody"))
    assert {key: found.outcome for key, found in told.items()} == {
        one.id: "damaged",
        two.id: "at_rest",
    }
    assert "The object of seq 1 is damaged" in (told[one.id].reason or "")


async def test_more_conversations_than_are_looked_at_at_once_are_all_told_of(
    house: House, temporal: temporalio.client.Client
) -> None:
    store, names = house.client.store, {new_conversation_id() for _ in range(40)}
    for name in names:
        key = conversation_prefix("anna", name) + event_key(name, 0)
        await store.create(key, b"{")
    other = Client(temporal, store, user_id="anna")
    assert set(await everything(other)) == names
    assert await everything(house.client) == {}


async def test_what_was_never_there_is_not_found(house: House) -> None:
    with pytest.raises(NotFound):
        await reopen(house.client, new_conversation_id())
