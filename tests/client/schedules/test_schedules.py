"""Schedules on a real Temporal: created, fired, paused, listed and deleted."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from perdure.api.schedules import Schedule, ScheduleDefinition
from perdure.client.conversation import Conversation
from perdure.client.schedules.protocol import build_definition
from perdure.client.schedules.schedules import Schedules
from perdure.errors import Conflict, Invalid, NotFound
from perdure.events.messages import MessageEvent
from tests.harness import ConversationHarness, text_answer
from tests.workflows.conftest import harness, temporal

__all__ = ["harness", "temporal"]

NEVER_SOON = {"cron": ("0 8 1 1 *",)}


@pytest_asyncio.fixture
async def schedules(harness: ConversationHarness) -> AsyncIterator[Schedules]:
    """The schedules of a user of their own; all of them are deleted at the end."""
    user = f"anna-{harness.client.task_queue}"
    made = Schedules(harness.client.as_user(user))
    yield made
    for each in await made.list_schedules():
        await made.delete(each.name)


def define(text: str = "Look at the tickets.", **fields: Any) -> ScheduleDefinition:
    return build_definition(text, **{**NEVER_SOON, **fields})


async def await_firings(schedules: Schedules, name: str, number: int) -> Schedule:
    async with asyncio.timeout(60):
        while len((found := await schedules.get(name)).recent_firings) < number:
            await asyncio.sleep(0.1)
        return found


async def user_texts(schedules: Schedules, conversation_id: str) -> list[str]:
    events = list(await schedules.client.conversation(conversation_id).event_log.read())
    return [
        it.llm_message.content[0].text  # type: ignore[union-attr]
        for it in events
        if isinstance(it, MessageEvent) and it.source == "user"
    ]


@pytest.mark.long
async def test_each_time_begins_a_conversation(
    harness: ConversationHarness, schedules: Schedules
) -> None:
    spec = harness.spec(text_answer("There are none."))
    async with harness.worker():
        await schedules.create("tickets", define(cron=(), every=1), spec)
        found = await await_firings(schedules, "tickets", 2)
        ids = [firing.conversation_id for firing in found.recent_firings]
        assert len(set(ids)) == len(ids)
        for conversation_id in ids[:2]:
            result = await schedules.client.conversation(conversation_id).result()
            assert result.text == "There are none."
            assert await user_texts(schedules, conversation_id) == ["Look at the tickets."]


async def test_a_message_is_sent_to_a_conversation_that_goes_on(
    harness: ConversationHarness, schedules: Schedules
) -> None:
    answers = [text_answer("Hello."), text_answer("Still none.")]
    async with harness.worker():
        conversation = await schedules.client.start("Hi.", harness.spec(*answers))
        await conversation.result()
        await schedules.create("more", define(conversation_id=conversation.id))
        await schedules.trigger("more")
        found = await await_firings(schedules, "more", 1)
        assert found.recent_firings[0].conversation_id == conversation.id
        async with asyncio.timeout(60):
            while (await conversation.result()).text != "Still none.":
                await asyncio.sleep(0.1)
        assert await user_texts(schedules, conversation.id) == ["Hi.", "Look at the tickets."]


async def test_a_schedule_is_described_listed_paused_and_deleted(schedules: Schedules) -> None:
    definition = define(cron=("0 8 * * 1-5", "30 9 * * 6"), time_zone="Europe/Oslo", jitter=60)
    made = await schedules.create("daily", definition, _agent())
    assert made.definition == definition
    assert (made.agent, made.paused, made.firing_count, made.recent_firings) == (
        "scripted:none.json",
        False,
        0,
        (),
    )
    assert len(made.next_times) > 1
    assert made.created is not None
    assert made.next_times[0] > made.created
    await schedules.pause("daily", "holidays")
    found = await schedules.get("daily")
    assert (found.paused, found.note) == (True, "holidays")
    async with asyncio.timeout(30):  # the list is a little behind
        while not [it for it in await schedules.list_schedules() if it.paused]:
            await asyncio.sleep(0.1)
    (listed,) = await schedules.list_schedules()
    assert (listed.name, listed.definition) == ("daily", definition)
    await schedules.resume("daily")
    assert not (await schedules.get("daily")).paused
    await schedules.delete("daily")
    with pytest.raises(NotFound, match="There is no schedule daily"):
        await schedules.get("daily")


async def test_times_of_before_are_made_up_for(
    harness: ConversationHarness, schedules: Schedules
) -> None:
    async with harness.worker():
        await schedules.create(
            "hourly",
            define(cron=("0 * * * *",), overlap="allow_all"),
            harness.spec(text_answer(".")),
        )
        await schedules.backfill("hourly", "2026-01-01T00:00", "2026-01-01T02:30")
        found = await await_firings(schedules, "hourly", 3)
        hours = [firing.scheduled_at[:16] for firing in found.recent_firings]
        assert sorted(hours) == ["2026-01-01T00:00", "2026-01-01T01:00", "2026-01-01T02:00"]


async def test_a_backfill_of_too_many_times_is_refused(schedules: Schedules) -> None:
    await schedules.create("hourly", define(cron=("0 * * * *",)), _agent())
    with pytest.raises(Invalid, match="There are 1000 times or more"):
        await schedules.backfill("hourly", "2020-01-01", "2026-01-01")
    for since in ("0001-01-01", "9999-12-31"):
        with pytest.raises(Invalid, match="is no date and time from 1971 to"):
            await schedules.backfill("hourly", since, "2026-01-01")


@pytest.mark.long
async def test_a_turn_that_goes_on_lets_a_time_pass(
    harness: ConversationHarness, schedules: Schedules
) -> None:
    slow = harness.spec({"content": "Slowly. " * 50, "chunk_delay": 60})
    async with harness.worker():
        await schedules.create("slow", define(cron=(), every=1), slow)
        async with asyncio.timeout(60):
            while not (await schedules.get("slow")).skipped_count:
                await asyncio.sleep(0.2)
        found = await schedules.get("slow")
        assert len(found.recent_firings) == 1
        await schedules.pause("slow")
        await schedules.client.conversation(found.recent_firings[0].conversation_id).interrupt()


@pytest.mark.long
async def test_a_turn_that_goes_on_is_interrupted_by_the_next(
    harness: ConversationHarness, schedules: Schedules
) -> None:
    slow = harness.spec({"content": "Slowly. " * 50, "chunk_delay": 60})
    async with harness.worker():
        await schedules.create("newest", define(overlap="cancel_other"), slow)
        await schedules.trigger("newest")
        first = schedules.client.conversation(
            (await await_firings(schedules, "newest", 1)).recent_firings[0].conversation_id
        )
        async with asyncio.timeout(60):
            while not await first.exists() or (await first.status()).status != "running":
                await asyncio.sleep(0.1)
            await asyncio.sleep(1)  # a second trigger within a second has the same id
            await schedules.trigger("newest")
            while (await first.status()).status == "running":
                await asyncio.sleep(0.1)
        found = await await_firings(schedules, "newest", 2)
        second = schedules.client.conversation(found.recent_firings[-1].conversation_id)
        assert second.id != first.id
        await second.interrupt()


async def test_schedules_are_their_users(schedules: Schedules) -> None:
    await schedules.create("own", define(), _agent())
    ben = Schedules(schedules.client.as_user(f"ben-{schedules.client.task_queue}"))
    assert await ben.list_schedules() == []
    for act in (ben.get, ben.pause, ben.resume, ben.trigger, ben.delete):
        with pytest.raises(NotFound, match="There is no schedule own"):
            await act("own")
    with pytest.raises(NotFound, match="There is no schedule own"):
        await ben.backfill("own", "2026-01-01", "2026-01-02")
    assert not (await schedules.get("own")).paused


async def test_a_name_is_given_once(schedules: Schedules) -> None:
    await schedules.create("own", define(), _agent())
    with pytest.raises(Conflict, match="There is a schedule own already"):
        await schedules.create("own", define("Another."), _agent())


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"cron": ("0 0 30 2 *",)}, "never begins"),
        ({"cron": ("at noon",)}, "Temporal refuses the schedule"),
        ({"time_zone": "Europe/Olso"}, "There is no time zone 'Europe/Olso'"),
    ],
)
async def test_times_that_are_none_are_refused(
    schedules: Schedules, fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(Invalid, match=sentence):
        await schedules.create("odd", define(**fields), _agent())
    with pytest.raises(NotFound):  # lists may have it for a moment
        await schedules.get("odd")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"cron": ()}, "give `cron` or `every`"),
        ({"every": 0.1}, "every: "),
        ({"overlap": "terminate"}, "overlap: "),
        ({"catch_up": 1}, "catch_up: "),
        ({"text": " "}, "may not be empty"),
        ({"conversation_id": "mine"}, "conversation_id: "),
    ],
)
def test_a_definition_that_is_none_is_refused(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Invalid, match=sentence):
        define(**fields)


async def test_names_conversations_and_moments_that_are_none_are_refused(
    schedules: Schedules,
) -> None:
    with pytest.raises(Invalid, match="no name of a schedule"):
        await schedules.create("a:b", define(), _agent())
    with pytest.raises(Invalid, match="begins conversations of an agent, or"):
        await schedules.create("both", define())
    absent = "01a20dd5-34bc-7385-bafd-6ea6a1e795ea"
    with pytest.raises(NotFound, match="There is no conversation"):
        await schedules.create("lost", define(conversation_id=absent))
    with pytest.raises(Invalid, match="is no date and time"):
        await schedules.backfill("lost", "yesterday", "2026-01-01")
    with pytest.raises(Invalid, match="has to begin before it ends"):
        await schedules.backfill("lost", "2026-01-02", "2026-01-01")


def _agent() -> Any:
    from perdure.agent.spec import Agent

    return Agent(model="scripted:none.json")


async def test_a_firing_that_is_cancelled_before_it_has_begun_leaves_no_turn(
    harness: ConversationHarness, schedules: Schedules
) -> None:
    slow = harness.spec({"content": "Slowly. " * 50, "chunk_delay": 60})
    await schedules.create("never", define(), slow)
    await schedules.trigger("never")
    found = await await_firings(schedules, "never", 1)
    conversation = schedules.client.conversation(found.recent_firings[0].conversation_id)
    query = f"WorkflowType = 'Firing' AND TaskQueue = '{harness.client.task_queue}'"
    server = schedules.client.temporal
    async with asyncio.timeout(60):
        while not (ids := [it.id async for it in server.list_workflows(query)]):
            await asyncio.sleep(0.1)
    await server.get_workflow_handle(ids[0]).cancel()
    async with harness.worker(), asyncio.timeout(60):
        while await read_reason(conversation) != "interrupted by the user":
            await asyncio.sleep(0.1)


async def read_reason(conversation: Conversation) -> str | None:
    """Return the reason of the status; None also while nothing is in the log."""
    with contextlib.suppress(NotFound):
        return (await conversation.state()).reason
    return None
