"""Heartbeats and failures of steps."""

import asyncio
import dataclasses
import time
from datetime import timedelta

import pytest
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.testing import ActivityEnvironment

from perdure.activities.support.step import ensure_not_given_up, heartbeating
from perdure.agent.loop.phase import find_fault
from perdure.agent.loop.steps import Think
from perdure.events.status import InternalError
from perdure.models.model import ModelUnavailable
from perdure.secrets.registry import Secrets
from perdure.workflows.step_failures import failure_item


def activity_environment(timeout: float) -> ActivityEnvironment:
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(
        environment.info, heartbeat_timeout=timedelta(seconds=timeout), attempt=1
    )
    return environment


async def stall(seconds: float) -> str:
    async with heartbeating(Secrets()) as progress:
        time.sleep(seconds)  # the loop stands still, as on a machine that swaps
        ensure_not_given_up(progress)
        return "asked"


async def test_an_attempt_that_stalled_beyond_its_timeout_calls_no_model() -> None:
    with pytest.raises(ApplicationError, match="begun again elsewhere") as raised:
        await activity_environment(0.2).run(stall, 0.3)
    assert not raised.value.non_retryable


async def test_an_attempt_that_stalled_within_its_timeout_goes_on() -> None:
    assert await activity_environment(600.0).run(stall, 0.25) == "asked"


async def test_steps_that_wait_together_share_the_heartbeats_of_their_process() -> None:
    async def count_heartbeats(steps: int) -> list[int]:
        beats = [0] * steps

        async def wait(nth: int) -> None:
            environment = activity_environment(2.0)

            def count(*_: object) -> None:
                beats[nth] += 1

            environment.on_heartbeat = count
            await environment.run(work)

        async def work() -> None:
            async with heartbeating(Secrets()):
                await asyncio.sleep(1.5)

        await asyncio.gather(*(wait(nth) for nth in range(steps)))
        return beats

    together = await count_heartbeats(100)
    assert min(together) >= 1
    assert max(together) <= 3  # after 0.25 s, and then every 0.8 s
    [alone] = await count_heartbeats(1)
    assert alone > max(together)  # alone it is every 0.25 s; those that have ended do not count


async def test_an_error_that_nobody_expected_is_told_by_its_kind_and_an_id(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail() -> None:
        async with heartbeating(Secrets()):
            raise KeyError("the customer's name")

    environment = activity_environment(600.0)
    with pytest.raises(ApplicationError) as raised:
        await environment.run(fail)
    run_id = environment.info.workflow_run_id or ""
    fault_id = f"{run_id[:8]}-{environment.info.activity_id}"
    assert (raised.value.type, raised.value.details) == ("KeyError", ("fault", fault_id))
    assert not raised.value.non_retryable
    assert f"fault {fault_id}" in caplog.text
    assert "the customer's name" in caplog.text
    failed = ActivityError(
        "failed",
        scheduled_event_id=1,
        started_event_id=2,
        identity="w",
        activity_type="llm.chat",
        activity_id="7",
        retry_state=None,
    )
    failed.__cause__ = raised.value
    think = Think(spec_seq=1, prompt_seq=2, response_index=0)
    item = failure_item(think, failed)
    assert (item.code, "customer" in item.detail) == ("internal", False)
    assert find_fault("error", f"{item.code}: {item.detail}") == InternalError(
        kind="KeyError", id=fault_id
    )


async def test_an_unavailable_model_is_asked_again_when_the_provider_says() -> None:
    with pytest.raises(ApplicationError, match=r"Busy.") as raised:
        async with heartbeating(Secrets()):
            raise ModelUnavailable("rate_limit", "Busy.", retry_after=7)
    assert raised.value.next_retry_delay == timedelta(seconds=7)
    assert not raised.value.non_retryable
