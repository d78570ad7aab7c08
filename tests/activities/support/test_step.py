"""Heartbeats and failures of steps."""

import dataclasses
import time
from datetime import timedelta

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from perdure.activities.support.step import ensure_not_given_up, heartbeating
from perdure.models.model import ModelUnavailable
from perdure.secrets.registry import Secrets


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


async def test_an_unavailable_model_is_asked_again_when_the_provider_says() -> None:
    with pytest.raises(ApplicationError, match=r"Busy.") as raised:
        async with heartbeating(Secrets()):
            raise ModelUnavailable("rate_limit", "Busy.", retry_after=7)
    assert raised.value.next_retry_delay == timedelta(seconds=7)
    assert not raised.value.non_retryable
