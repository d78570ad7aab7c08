"""How patient to be with each kind of step."""

from datetime import timedelta

from temporalio.common import RetryPolicy
from temporalio.workflow import ActivityConfig

from agent.spec import Spec
from agent.steps import Act, Open, Step, Think

PATIENT = RetryPolicy(
    initial_interval=timedelta(milliseconds=500), maximum_interval=timedelta(seconds=30)
)
ONCE = RetryPolicy(maximum_attempts=1)

BRIEF = timedelta(seconds=60)
"""For a step that only reads and writes the log."""

GIVING_UP = timedelta(hours=1)
"""How long a model may be unavailable before the turn ends."""

MARGIN = timedelta(seconds=30)
"""What the worker may take beyond a tool's own time limit, which it keeps itself."""


def options(step: Step | Open, spec: Spec) -> ActivityConfig:
    silent = timedelta(seconds=spec.heartbeat_timeout)
    match step:
        case Think():
            return ActivityConfig(
                heartbeat_timeout=silent,
                start_to_close_timeout=timedelta(seconds=spec.model.timeout) + MARGIN,
                schedule_to_close_timeout=GIVING_UP,
                retry_policy=PATIENT,
            )
        case Act():
            # A call that may have had an effect is never made again by itself.
            return ActivityConfig(
                heartbeat_timeout=silent,
                start_to_close_timeout=timedelta(seconds=spec.tool_timeout) + MARGIN,
                retry_policy=PATIENT if step.repeatable else ONCE,
            )
        case _:
            return ActivityConfig(
                heartbeat_timeout=silent, start_to_close_timeout=BRIEF, retry_policy=PATIENT
            )
