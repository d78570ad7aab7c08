"""The queue of a step that asks a model, and its timeout there."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    RetryState,
    TimeoutError,
    TimeoutType,
)
from temporalio.workflow import ActivityConfig

from perdure.activities.support.step_queues import StepQueues as Limits
from perdure.agent.loop.model_queues import WRONG_QUEUE, first_model, model_queue_name
from perdure.agent.loop.steps import Condense, GenerateTitle, Prepare, Think
from perdure.agent.spec import ModelSpec, PipelineCondenser, RecentCondenser, SummaryCondenser
from perdure.workflows.model_queues import KnownModelQueues
from tests.builders import SPEC


def failed(cause: BaseException, activity_id: str = "7") -> ActivityError:
    error = ActivityError(
        "failed",
        scheduled_event_id=1,
        started_event_id=2,
        identity="",
        activity_type="llm.chat",
        activity_id=activity_id,
        retry_state=RetryState.NON_RETRYABLE_FAILURE,
    )
    error.__cause__ = cause
    return error


def queue_timeout() -> TimeoutError:
    return TimeoutError("late", type=TimeoutType.SCHEDULE_TO_START, last_heartbeat_details=[])


def wrong_queue_error(model: str, queue: str) -> ApplicationError:
    return ApplicationError("elsewhere", model, queue, type=WRONG_QUEUE, non_retryable=True)


async def route_step(lanes: KnownModelQueues, *causes: BaseException) -> list[ActivityConfig]:
    """Route a step that fails for these reasons first; return the queues that it was sent to."""
    ways: list[ActivityConfig] = []
    left = list(causes)

    async def ask(way: ActivityConfig) -> str:
        ways.append(way)
        if left:
            raise failed(left.pop(0), way.get("activity_id") or "7")
        return "done"

    step = Think(spec_seq=1)
    assert await lanes.route(step, SPEC, ActivityConfig(summary="kept"), ask) == "done"
    return ways


async def test_the_wait_on_a_slow_queue_grows_each_time() -> None:
    name, queue = SPEC.model.name, model_queue_name("q", SPEC.model.name)
    lanes = KnownModelQueues({name: queue})
    back = (queue_timeout(), wrong_queue_error(name, queue))
    ways = await route_step(lanes, *back * 20)
    assert [way.get("task_queue") for way in ways] == [queue, None] * 20 + [queue]
    waits = [way["schedule_to_start_timeout"] for way in ways if "task_queue" in way]
    assert all(wait is not None for wait in waits)
    assert waits == sorted(waits, key=lambda item: item or timedelta())
    assert len(set(waits[:5])) == 5
    assert waits[-1] == timedelta(days=1)
    # The time that a call waits for its turn is not the model's.
    for way in ways[::2]:
        assert way["schedule_to_close_timeout"] > way["schedule_to_start_timeout"]  # type: ignore[operator]
    assert {way["summary"] for way in ways} == {"kept"}
    assert [way.get("activity_id") for way in ways[:4]] == [None, "7+", "7+", "7+"]


async def test_a_step_that_fails_otherwise_fails() -> None:
    lanes = KnownModelQueues({SPEC.model.name: "q%m"})
    for cause in (ApplicationError("no", type="Fenced"), ValueError("no")):
        with pytest.raises(ActivityError):
            await route_step(lanes, cause)
    with pytest.raises(ActivityError):
        await route_step(KnownModelQueues(None), queue_timeout())
    assert lanes.as_input() == {SPEC.model.name: "q%m"}


def test_steps_of_unlimited_models_use_the_common_queue() -> None:
    assert KnownModelQueues(None).queue_options("m", SPEC) == {}
    assert KnownModelQueues({"other": "q"}).queue_options("m", SPEC) == {}
    assert KnownModelQueues({}).as_input() is None


def test_a_step_is_counted_for_the_model_that_it_asks() -> None:
    own, other = SPEC.model.name, ModelSpec(name="other")
    condense = Condense(spec_seq=1, forgotten_seqs=())
    pipeline = PipelineCondenser(condensers=(RecentCondenser(), SummaryCondenser(model=other)))

    def name(step: Any, **changes: Any) -> str | None:
        return first_model(step, SPEC.model_copy(update=changes))

    assert name(Think(spec_seq=1)) == own
    assert name(GenerateTitle(spec_seq=1, message_seq=2), title_model=other) == "other"
    assert name(condense, condenser=SummaryCondenser()) == own
    assert name(condense, condenser=pipeline) == "other"
    assert name(condense, condenser=RecentCondenser()) is None
    assert name(Prepare(spec_seq=1)) is None


def test_queues_of_models_do_not_meet() -> None:
    names = ("openai/gpt-5", "openai-gpt-5", "openai gpt-5")
    assert not [
        item
        for item, times in Counter(model_queue_name("q", n) for n in names).items()
        if times > 1
    ]
    assert Limits("q", {"a/b": 1.0}).queues == {"a/b": "q%a/b"}
