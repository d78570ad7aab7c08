"""The session state: tools, agents, people and programs change it, each change once."""

import asyncio
import dataclasses
import uuid
from typing import Any

import pytest

from perdure.client.conversation import Conversation
from perdure.embedded.seaweed import Seaweed
from perdure.embedded.temporal import TemporalServer
from perdure.errors import Conflict, Forbidden
from perdure.events.content import join_text
from perdure.events.messages import SystemPromptEvent
from perdure.events.tools import AgentErrorEvent, ObservationEvent
from perdure.storage.files import FileStore
from perdure.storage.log.state import load_cached_state, read_state
from perdure.storage.s3 import S3Store
from perdure.storage.shared_values import read_shared_value
from perdure.storage.store import S3Access, Store
from tests.harness import ConversationHarness, text_answer, tool_call_answer
from tests.workers import worker_process
from tests.workflows.watching import events, observations

TOOLS = ("tests.state_tools:TOOLS", "think", "finish")


def counting_spec(harness: ConversationHarness, calls: int, seconds: float = 0.0) -> Any:
    steps = [tool_call_answer(("count_up", {"seconds": seconds + n / 1e4})) for n in range(calls)]
    return harness.spec(*steps, text_answer("Done."), tools=TOOLS, heartbeat_timeout=1)


async def read_count(talk: Conversation) -> Any:
    return (await read_shared_value(talk.log.store, talk.log.user_id, "user:count")).value


async def test_a_tool_changes_the_state_and_its_result_says_so(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        talk = await harness.client.start("Count.", counting_spec(harness, 2))
        await talk.result()
        assert await talk.values() == {"count": 2, "user:count": 2}
        results = await events(talk, ObservationEvent)
        assert [result.state for result in results] == [
            {"count": number, "user:count": number} for number in (1, 2)
        ]
        state = await read_state(talk.log)
        assert list(state.value_seqs) == ["count"]
        await talk.close()
        await talk.handle.result()
    assert (await load_cached_state(talk.log)).value_seqs == state.value_seqs


async def test_a_call_that_fails_changes_nothing(harness: ConversationHarness) -> None:
    spec = harness.spec(
        tool_call_answer(("count_and_fail", {})),
        tool_call_answer(("write_app", {})),
        text_answer("Oh."),
        tools=TOOLS,
    )
    world = dataclasses.replace(harness.resources, app_writers=())
    async with dataclasses.replace(harness, resources=world).worker():
        talk = await harness.client.start("Count.", spec)
        await talk.result()
    assert await talk.values() == {}
    failures = await events(talk, AgentErrorEvent)
    assert "after it has counted" in failures[0].error
    assert "may not change values of app:" in failures[1].error


@pytest.mark.long
async def test_two_conversations_that_count_at_once_on_s3_lose_nothing(
    harness: ConversationHarness, seaweed: Seaweed
) -> None:
    name = f"state-{uuid.uuid4()}"
    await seaweed.make_bucket(name)
    access = S3Access(seaweed.endpoint, seaweed.access_key, seaweed.secret_key, "us-east-1")
    harness = with_store(harness, S3Store(name, "some/prefix", access))
    async with harness.worker():
        talks = [await harness.client.start("Count.", counting_spec(harness, 8)) for _ in range(2)]
        await asyncio.gather(*(talk.result() for talk in talks))
    assert await read_count(talks[0]) == 16
    for talk in talks:
        assert (await talk.values())["count"] == 8
        assert not await events(talk, AgentErrorEvent)


async def test_a_call_is_told_of_a_conflict_and_overwrites_nothing(
    harness: ConversationHarness,
) -> None:
    """`overwrite` reads a shared value, and writes it after somebody else has."""
    spec = harness.spec(tool_call_answer(("overwrite", {})), text_answer("I see."), tools=TOOLS)
    async with harness.worker():
        talk = await harness.client.start("Go.", spec)
        await talk.result()
    [failure] = await events(talk, AgentErrorEvent)
    assert 'user:count was changed by somebody else meanwhile: it is now "theirs"' in failure.error
    assert "nothing was written" in failure.error
    assert await talk.values() == {"user:count": "theirs"}


class DyingOnce(FileStore):
    """A store whose writer dies once before it records the result of a call."""

    died = False

    async def create(self, key: str, body: bytes) -> bool:
        if b'"ObservationEvent"' in body and not self.died:
            self.died = True
            raise RuntimeError("killed between the shared value and the result")
        return await super().create(key, body)


async def test_a_call_that_is_tried_again_counts_once(harness: ConversationHarness) -> None:
    store = DyingOnce(harness.folder / "dying")
    harness = with_store(harness, store)
    async with harness.worker():
        talk = await harness.client.start("Count.", counting_spec(harness, 2))
        await talk.result()
    assert store.died
    assert await observations(talk) == ["counted to 1", "counted to 2"]
    assert await talk.values() == {"count": 2, "user:count": 2}


@pytest.mark.long
async def test_calls_count_once_each_while_workers_are_killed(
    harness: ConversationHarness, temporal_server: TemporalServer
) -> None:
    environment = {
        "TEMPORAL_ADDRESS": temporal_server.address,
        "PERDURE_STORE": f"file://{harness.folder / 'store'}",
        "PERDURE_DATA": str(harness.folder),
        "PERDURE_TASK_QUEUE": harness.client.task_queue,
    }
    talk = await harness.client.start("Count.", counting_spec(harness, 10, seconds=0.3))
    finished = asyncio.ensure_future(talk.wait_for_turn())
    killed = 0
    while not finished.done():
        with worker_process(environment, harness.folder / f"{killed}.log") as worker:
            done, _ = await asyncio.wait({finished}, timeout=3.0 * 1.3**killed)
            if not done:
                worker.kill()
                killed += 1
    assert killed >= 1
    assert await talk.values() == {"count": 10, "user:count": 10}
    numbers = [event.state["count"] for event in await events(talk, ObservationEvent)]
    assert numbers == list(range(1, 11))


async def test_a_note_of_another_version_is_refused_and_its_sender_told(
    harness: ConversationHarness,
) -> None:
    async with harness.worker():
        talk = await harness.client.start("Hi.", harness.spec(text_answer("Hello.")))
        await talk.result()
        await talk.note(state={"mood": "good", "user:tone": "dry"})
        read = await talk.read_values()
        assert read.values == {"mood": "good", "user:tone": "dry"}
        await talk.note(state={"user:tone": "warm"}, versions=read.versions)
        with pytest.raises(Conflict, match=r'user:tone was changed .* now "warm"'):
            await talk.note(state={"user:tone": "cold", "mood": "bad"}, versions=read.versions)
        assert await talk.values() == {"mood": "good", "user:tone": "warm"}
        await talk.note(state={"user:tone": None, "mood": None})
        assert await talk.values() == {}


async def test_values_of_all_users_are_changed_by_those_whom_the_setting_names(
    harness: ConversationHarness,
) -> None:
    world = dataclasses.replace(harness.resources, app_writers=("admin",))
    async with dataclasses.replace(harness, resources=world).worker():
        talk = await harness.client.start("Hi.", harness.spec(text_answer("Hello.")))
        with pytest.raises(Forbidden, match=r"may not change values of app:.* app_writers"):
            await talk.note(state={"app:motd": "hi", "mood": "good"})
        assert await talk.values() == {}
        admin = await harness.client.as_user("admin").start(
            "Hi.", harness.spec(text_answer("Hello."))
        )
        await admin.note(state={"app:motd": "hi"})
        assert await talk.values() == {"app:motd": "hi"}


async def test_an_agent_that_is_shown_the_state_reads_and_changes_it(
    harness: ConversationHarness,
) -> None:
    spec = harness.spec(
        tool_call_answer(
            ("state", {"command": "set", "key": "plan", "value": {"step": 1}}),
            ("state", {"command": "set", "key": "user:tone", "value": "dry"}),
        ),
        tool_call_answer(("state", {"command": "set", "key": "user:tone", "value": "warm"})),
        tool_call_answer(
            ("state", {"command": "set", "key": "user:tone", "value": "warm", "before": "dry"}),
            ("state", {"command": "get"}),
        ),
        text_answer("Done."),
        text_answer("Again."),
        state="shown",
    )
    async with harness.worker():
        talk = await harness.client.start("Plan.", spec)
        await talk.result()
        assert await talk.values() == {"plan": {"step": 1}, "user:tone": "warm"}
        [refused] = await events(talk, AgentErrorEvent)
        assert 'user:tone is "dry", and `before` is not' in refused.error
        assert (await observations(talk))[-1] == '{"user:tone": "warm", "plan": {"step": 1}}'
        await talk.note(state={"plan": {"step": 2}})
        await talk.send("Go on.")
        await talk.result()
    prompts = [event.dynamic_context for event in await events(talk, SystemPromptEvent)]
    texts = [join_text((context,)) if context else "" for context in prompts]
    assert "(no values yet)" in texts[0]
    assert '"plan": {"step": 2}' in texts[-1]
    assert '"user:tone": "warm"' in texts[-1]
    state = await read_state(talk.log)
    assert state.prompt_seq is not None
    assert (await talk.log.get(state.prompt_seq)).event == (await events(talk, SystemPromptEvent))[
        -1
    ]


def with_store(harness: ConversationHarness, store: Store) -> ConversationHarness:
    harness.client.store = store
    world = dataclasses.replace(harness.resources, store=store)
    return dataclasses.replace(harness, resources=world)
