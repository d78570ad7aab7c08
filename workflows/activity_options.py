"""Timeouts and retries of each kind of step."""

from datetime import timedelta

from temporalio.common import RetryPolicy
from temporalio.workflow import ActivityCancellationType, ActivityConfig

from perdure.agent.loop.state import State
from perdure.agent.loop.step_summary import summarize_step
from perdure.agent.loop.steps import (
    Act,
    CloneRepository,
    Condense,
    FinishAttempt,
    GenerateTitle,
    Ingest,
    Open,
    Prepare,
    SetUp,
    Step,
    Think,
)
from perdure.agent.spec import Agent
from perdure.temporal.timeouts import (
    BATCH_HEARTBEAT_TIMEOUT,
    CLONE_TIMEOUT,
    FIRST_RETRY,
    SETUP_TIMEOUT,
    UNLIMITED_RETRIES,
)

NO_RETRY = RetryPolicy(maximum_attempts=1)
LIMITED_RETRIES = RetryPolicy(
    initial_interval=FIRST_RETRY,
    maximum_interval=timedelta(seconds=30),
    maximum_attempts=10,
)
"""Retries of a repeatable tool call, limited as the call may be what kills its workers."""

LOG_STEP_TIMEOUT = timedelta(seconds=60)
"""Timeout of a step that only reads and writes the log."""

MODEL_OUTAGE_TIMEOUT = timedelta(hours=1)
"""Longest unavailability of a model before the turn ends."""

INGESTION_TIMEOUT = timedelta(minutes=10)
"""Longest time for which the end of a conversation waits until its memories are put."""

HOME_TIMEOUT = timedelta(seconds=15)
"""Time for a worker to come back before a step that needs its files goes to another."""

TIMEOUT_MARGIN = timedelta(seconds=30)
"""Time added to limits that the worker enforces itself."""


CANCELLATION_TYPE = ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
"""Cancellation that waits for the partial result of a step."""


def activity_options(
    step: Step | Open, state: State, spec: Agent, is_sample: bool = False
) -> ActivityConfig:
    """Return the options of a step's activity, with a summary for the Temporal UI.

    Nobody waits closely for the steps of a sample: they may be silent for longer.
    """
    timeout = timedelta(seconds=spec.heartbeat_timeout)
    if is_sample:
        timeout = max(timeout, BATCH_HEARTBEAT_TIMEOUT)
    return {**_limits(step, spec, timeout), "summary": summarize_step(step, state, spec)}


def _limits(step: Step | Open, spec: Agent, heartbeat_timeout: timedelta) -> ActivityConfig:
    thinking = sum(model.timeout for model in (spec.model, *spec.fallbacks))
    match step:
        case Think() | Condense() | GenerateTitle():
            return ActivityConfig(
                heartbeat_timeout=heartbeat_timeout,
                start_to_close_timeout=timedelta(seconds=thinking) + TIMEOUT_MARGIN,
                schedule_to_close_timeout=MODEL_OUTAGE_TIMEOUT,
                retry_policy=UNLIMITED_RETRIES,
                cancellation_type=CANCELLATION_TYPE,
            )
        case Act():
            # A call that may have had an effect is never retried automatically.
            return ActivityConfig(
                heartbeat_timeout=heartbeat_timeout,
                start_to_close_timeout=timedelta(seconds=spec.tool_timeout) + TIMEOUT_MARGIN,
                retry_policy=LIMITED_RETRIES if step.repeatable else NO_RETRY,
                cancellation_type=CANCELLATION_TYPE,
            )
        case Ingest():
            options = _with_unlimited_retries(heartbeat_timeout, INGESTION_TIMEOUT)
            return {**options, "schedule_to_close_timeout": INGESTION_TIMEOUT}
        case FinishAttempt():
            return _with_unlimited_retries(
                heartbeat_timeout,
                LOG_STEP_TIMEOUT + timedelta(seconds=step.attempt.scoring_timeout),
            )
        case CloneRepository():  # the worker has a shorter limit of its own
            return _with_unlimited_retries(heartbeat_timeout, CLONE_TIMEOUT)
        case SetUp():
            return _with_unlimited_retries(heartbeat_timeout, LOG_STEP_TIMEOUT + SETUP_TIMEOUT)
        case _:
            servers = spec.mcp if isinstance(step, Prepare) else ()
            starting = max((server.start_timeout for server in servers), default=0.0)
            return _with_unlimited_retries(
                heartbeat_timeout, LOG_STEP_TIMEOUT + timedelta(seconds=starting)
            )


def _with_unlimited_retries(heartbeat_timeout: timedelta, timeout: timedelta) -> ActivityConfig:
    return ActivityConfig(
        heartbeat_timeout=heartbeat_timeout,
        start_to_close_timeout=timeout,
        retry_policy=UNLIMITED_RETRIES,
        cancellation_type=CANCELLATION_TYPE,
    )


def home_queue_options(queue: str, spec: Agent) -> ActivityConfig:
    """Return the options by which a step waits for a worker that has its files."""
    heartbeat_timeout = timedelta(seconds=spec.heartbeat_timeout)
    return ActivityConfig(
        task_queue=queue, schedule_to_start_timeout=max(HOME_TIMEOUT, 3 * heartbeat_timeout)
    )
