"""How patient to be with each kind of step."""

from datetime import timedelta

from temporalio.common import RetryPolicy
from temporalio.workflow import ActivityCancellationType, ActivityConfig

from agent.spec import Spec
from agent.state import State
from agent.steps import Act, Condense, Entitle, Finish, Open, Prepare, SetUp, Step, Think

PATIENT = RetryPolicy(
    initial_interval=timedelta(milliseconds=500), maximum_interval=timedelta(seconds=30)
)
ONCE = RetryPolicy(maximum_attempts=1)
AGAIN = RetryPolicy(
    initial_interval=timedelta(milliseconds=500),
    maximum_interval=timedelta(seconds=30),
    maximum_attempts=10,
)
"""For a call that can be repeated: it may be what its workers die of."""

BRIEF = timedelta(seconds=60)
"""For a step that only reads and writes the log."""

SETTING_UP = timedelta(seconds=600)
"""How long the command of a sample may take before its first message."""

GIVING_UP = timedelta(hours=1)
"""How long a model may be unavailable before the turn ends."""

SUMMARY = 80
"""Characters of a name beside a step in the Temporal UI, which takes 400 bytes."""

AWAY = 3
"""Times a worker may be silent: when nobody takes a step, those who have its files are gone."""

MARGIN = timedelta(seconds=30)
"""What the worker may take beyond a tool's own time limit, which it keeps itself."""


STOPPABLE = ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
"""What a step had done when it was stopped is its result all the same."""


def options(step: Step | Open, state: State, spec: Spec) -> ActivityConfig:
    silent = timedelta(seconds=spec.heartbeat_timeout)
    thinking = sum(model.timeout for model in (spec.model, *spec.fallbacks))
    match step:
        case Think() | Condense() | Entitle():
            return ActivityConfig(
                heartbeat_timeout=silent,
                start_to_close_timeout=timedelta(seconds=thinking) + MARGIN,
                schedule_to_close_timeout=GIVING_UP,
                retry_policy=PATIENT,
                cancellation_type=STOPPABLE,
                summary=f"{spec.model.name.rpartition('/')[2][:SUMMARY]} · {state.shown} events",
            )
        case Act():
            # A call that may have had an effect is never made again by itself.
            return ActivityConfig(
                heartbeat_timeout=silent,
                start_to_close_timeout=timedelta(seconds=spec.tool_timeout) + MARGIN,
                retry_policy=AGAIN if step.repeatable else ONCE,
                cancellation_type=STOPPABLE,
                summary=_called(step, state),
            )
        case Finish():
            return _patiently(silent, BRIEF + timedelta(seconds=step.trial.scoring))
        case SetUp():
            return _patiently(silent, BRIEF + SETTING_UP)
        case _:
            servers = spec.mcp if isinstance(step, Prepare) else ()
            starting = max((server.start_timeout for server in servers), default=0.0)
            return _patiently(silent, BRIEF + timedelta(seconds=starting))


def _patiently(silent: timedelta, long: timedelta) -> ActivityConfig:
    return ActivityConfig(
        heartbeat_timeout=silent,
        start_to_close_timeout=long,
        retry_policy=PATIENT,
        cancellation_type=STOPPABLE,
    )


def at_home(queue: str, spec: Spec) -> ActivityConfig:
    """Where the files are, as long as somebody is there; a worker elsewhere restores them."""
    silent = timedelta(seconds=spec.heartbeat_timeout)
    return ActivityConfig(task_queue=queue, schedule_to_start_timeout=AWAY * silent)


def _called(step: Act, state: State) -> str:
    """The tool, and the first words of what it is to do where there are any."""
    called = next((one for one in state.pending if one.seq == step.action), None)
    if called is None:
        return ""
    return ": ".join(filter(None, (called.tool_name[:SUMMARY], called.headline)))
