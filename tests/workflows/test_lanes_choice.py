"""Which queue a step goes to that asks a model, and how long it waits there."""

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

from activities.lanes import Lanes as Limits
from agent.lanes import ELSEWHERE, lane_of, model_of
from agent.spec import ModelSpec, PipelineCondenser, RecentCondenser, SummaryCondenser
from agent.steps import Condense, Entitle, Prepare, Think
from tests.builders import SPEC
from workflows.lanes import Lanes


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


def untaken() -> TimeoutError:
    return TimeoutError("late", type=TimeoutType.SCHEDULE_TO_START, last_heartbeat_details=[])


def elsewhere(model: str, queue: str) -> ApplicationError:
    return ApplicationError("elsewhere", model, queue, type=ELSEWHERE, non_retryable=True)


async def asked(lanes: Lanes, *causes: BaseException) -> list[ActivityConfig]:
    """How a step was asked for that came to nothing for these reasons, before it was done."""
    ways: list[ActivityConfig] = []
    left = list(causes)

    async def ask(way: ActivityConfig) -> str:
        ways.append(way)
        if left:
            raise failed(left.pop(0), way.get("activity_id") or "7")
        return "done"

    step = Think(spec=1)
    assert await lanes.routed(step, SPEC, ActivityConfig(summary="kept"), ask) == "done"
    return ways


async def test_a_queue_that_is_far_behind_is_given_longer_each_time() -> None:
    name, queue = SPEC.model.name, lane_of("q", SPEC.model.name)
    lanes = Lanes({name: queue})
    back = (untaken(), elsewhere(name, queue))
    ways = await asked(lanes, *back * 20)
    assert [way.get("task_queue") for way in ways] == [queue, None] * 20 + [queue]
    waits = [way["schedule_to_start_timeout"] for way in ways if "task_queue" in way]
    assert all(one is not None for one in waits)
    assert waits == sorted(waits, key=lambda one: one or timedelta())
    assert len(set(waits[:5])) == 5
    assert waits[-1] == timedelta(days=1)
    # The time that a call waits for its turn is not the model's.
    for way in ways[::2]:
        assert way["schedule_to_close_timeout"] > way["schedule_to_start_timeout"]  # type: ignore[operator]
    assert {way["summary"] for way in ways} == {"kept"}
    assert [way.get("activity_id") for way in ways[:4]] == [None, "7+", "7+", "7+"]


async def test_a_step_that_fails_otherwise_fails() -> None:
    lanes = Lanes({SPEC.model.name: "q%m"})
    for cause in (ApplicationError("no", type="Fenced"), ValueError("no")):
        with pytest.raises(ActivityError):
            await asked(lanes, cause)
    with pytest.raises(ActivityError):
        await asked(Lanes(None), untaken())
    assert lanes.known() == {SPEC.model.name: "q%m"}


def test_what_is_not_limited_goes_where_it_always_went() -> None:
    assert Lanes(None).way("m", SPEC) == {}
    assert Lanes({"other": "q"}).way("m", SPEC) == {}
    assert Lanes({}).known() is None


def test_a_step_is_counted_for_the_model_that_it_asks() -> None:
    own, other = SPEC.model.name, ModelSpec(name="other")
    condense = Condense(spec=1, forgotten=())
    pipeline = PipelineCondenser(condensers=(RecentCondenser(), SummaryCondenser(model=other)))

    def name(step: Any, **changes: Any) -> str | None:
        return model_of(step, SPEC.model_copy(update=changes))

    assert name(Think(spec=1)) == own
    assert name(Entitle(spec=1, message=2), title_model=other) == "other"
    assert name(condense, condenser=SummaryCondenser()) == own
    assert name(condense, condenser=pipeline) == "other"
    assert name(condense, condenser=RecentCondenser()) is None
    assert name(Prepare(spec=1)) is None


def test_queues_of_models_do_not_meet() -> None:
    names = ("openai/gpt-5", "openai-gpt-5", "openai gpt-5")
    assert not [one for one, times in Counter(lane_of("q", n) for n in names).items() if times > 1]
    assert Limits("q", {"a/b": 1.0}).queues == {"a/b": "q%a/b"}
