"""A bad deploy, or no worker at all, is told, and all goes on with the right one."""

import asyncio
import logging

import pytest
import temporalio.client
from temporalio.worker import Worker

from activities.log import LogActivities
from agent.spec import Confirmation
from client.watchdog import Watchdog
from embedded.temporal import TemporalServer
from storage.trouble import kept_trouble
from tests.cli.command import Perdure
from tests.house import House, calls, says
from tests.workers import worker_process
from tests.workflows.other_code import Another, Bloated, Broken
from tests.workflows.troubles import LONGEST, environment, other_worker, told, well
from tests.workflows.watching import seen, until
from workflows.conversation import Conversation as RealConversation
from workflows.sandbox import Sandbox

pytestmark = pytest.mark.long

ALWAYS = Confirmation(policy="always")


async def test_broken_code_is_told_and_kept_until_a_mended_version_runs(
    house: House, temporal_server: TemporalServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "perdure.worker")
    watchdog = Watchdog(house.client, every=0.2)
    perdure = Perdure(environment(house, temporal_server))
    async with watchdog.watching():
        async with other_worker(house, Broken) as suspects:
            talk = await house.client.start("hi", house.spec(says("one")))
            found = await told(talk, "workflow task failed", "RuntimeError: the code is broken")
            assert found.status == "idle"
            assert set(suspects) == {talk.workflow_id}
            async with asyncio.timeout(LONGEST):
                while (kept := await kept_trouble(talk.log, 0)) is None:
                    await asyncio.sleep(0.05)
            assert "the code is broken" in kept
            shown = await perdure("status", talk.id)
            assert "\ntrouble      Its workflow task failed" in shown.out
        async with house.worker():
            state = await talk.finished()
            await well(talk)
            async with asyncio.timeout(LONGEST):
                while not any("goes on" in one.message for one in caplog.records):
                    await asyncio.sleep(0.05)
    assert state.status == "finished"
    assert await kept_trouble(talk.log, state.next_seq) is None
    warned = [one.message for one in caplog.records if one.levelname == "WARNING"]
    assert len([one for one in warned if talk.id in one and "does not go on" in one]) == 1


async def test_code_that_does_not_fit_the_history_is_told_until_the_right_version_runs(
    house: House, temporal_server: TemporalServer
) -> None:
    watchdog = Watchdog(house.client, every=0.2)
    async with house.worker():
        spec = house.spec(calls(("add", {"a": 1, "b": 2})), says("two"), confirmation=ALWAYS)
        talk = await house.client.start("hi", spec)
        await until(talk, "waiting_for_confirmation")
    async with other_worker(house, Another):
        await talk.send("never mind", message_id="m")
        await told(talk, "does not fit its history")
        async with watchdog.watching(), asyncio.timeout(LONGEST):
            while await kept_trouble(talk.log, await talk.log.end()) is None:
                await asyncio.sleep(0.05)
        shown = await Perdure(environment(house, temporal_server))("ls")
        assert "does not go on" in shown.out
    async with house.worker():
        assert (await talk.finished("m")).status == "finished"
        await well(talk)


async def test_what_is_too_large_for_temporal_is_told(
    house: House, temporal_server: TemporalServer
) -> None:
    careless = await temporalio.client.Client.connect(temporal_server.address)
    async with other_worker(house, Bloated, careless):
        talk = await house.client.start("hi", house.spec(says("one")))
        await told(talk, "too large", "`perdure resume`")
        await talk.handle.terminate("as it was told")
    async with house.worker():
        await talk.start("hi", house.spec(says("one")))
        assert (await talk.finished()).status == "finished"
        await well(talk)


async def test_a_step_that_the_worker_does_not_know_is_told_until_one_comes_that_does(
    house: House,
) -> None:
    client, log = house.client, LogActivities(house.world)
    spec = house.spec(says("one"))
    async with Worker(
        client.temporal,
        task_queue=client.task_queue,
        workflows=[RealConversation],
        activities=[log.open, log.append, log.prepare, log.save, log.close],
        workflow_runner=Sandbox(),
    ):
        talk = await client.start("hi", spec)
        await told(talk, "does not know its step llm.chat", "another version")
    async with house.worker():
        assert (await talk.finished()).status == "finished"
        await well(talk)


async def test_that_no_worker_is_there_is_told_until_one_comes(house: House) -> None:
    talk = await house.client.start("hi", house.spec(says("one")))
    await told(talk, "No worker has taken it up", "perdure worker")
    async with house.worker():
        assert (await talk.finished()).status == "finished"
        await well(talk)


async def test_a_worker_tells_in_its_log_what_does_not_go_on(
    house: House, temporal_server: TemporalServer
) -> None:
    log = house.folder / "worker.log"
    away = [{"status": 429, "retry_after": 600, "message": "too many"}]
    with worker_process(environment(house, temporal_server), log):
        talk = await house.client.start("hi", house.spec({"content": "one", "failures": away}))
        wanted = f"conversation {talk.id} does not go on: The model does not answer"
        await seen(lambda: wanted in log.read_text())
        await talk.interrupt()
        await seen(lambda: f"conversation {talk.id} goes on" in log.read_text())
    assert log.read_text().count(wanted) == 1
