"""The wait of a conversation's workflow: a timer of Temporal's, which costs nothing meanwhile."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from temporalio import workflow

from perdure.agent.loop.state import WAITING_STATUSES, seconds_until_end
from perdure.agent.loop.wait import Wait
from perdure.events.status import describe_wait
from perdure.workflows.continuation import Run, continue_if_due
from perdure.workflows.step_runner import PLACEHOLDER_SPEC
from perdure.workflows.versions import has_deployment


def timestamp_now() -> str:
    """Return the time of the workflow task as an event has it.

    `strftime` imports a module each time, which the sandbox of workflows makes slow.
    """
    now = workflow.now().astimezone(UTC).replace(tzinfo=None)
    return now.isoformat(timespec="microseconds")


async def await_inbox(run: Run) -> bool:
    """Wait until there is something to do; return False once the workflow is to end."""
    if run.state.status in WAITING_STATUSES:
        await await_wake(run, run.seconds_left())
        return True
    if run.start.attempt is not None:  # its batch waits, however long the pause
        await workflow.wait_condition(lambda: bool(run.inbox))
        return True
    timeout = seconds_until_end(run.state.spec or PLACEHOLDER_SPEC, run.state)
    try:
        await workflow.wait_condition(
            lambda: bool(run.inbox),
            timeout=timedelta(seconds=timeout),
            timeout_summary="the workflow ends unless a message comes",
        )
    except TimeoutError:
        return bool(run.inbox)
    return True


async def await_wake(run: Run, seconds_left: float | None) -> None:
    """Wait until something is in the inbox, or the time of the wait or the deadline has come.

    On a worker of a deployment it wakes after each idle time, so that a newer version may take it
    over; without versions there is one sleep, however long. May continue as new, where it is time
    to.
    """
    assert run.state.wait is not None, "a conversation that waits has a wait"
    ends = [*_seconds_to_ends(run.state.wait, seconds_left)]
    if has_deployment():
        ends.append((run.state.spec or PLACEHOLDER_SPEC).idle_timeout)
    seconds = min(ends, default=None)
    try:
        await workflow.wait_condition(
            lambda: bool(run.inbox),
            timeout=None if seconds is None else timedelta(seconds=seconds),
            timeout_summary=_summarize(run.state.wait),
        )
    except TimeoutError:
        continue_if_due(run)


def _seconds_to_ends(wait: Wait, seconds_left: float | None) -> Iterator[float]:
    """Yield the seconds to the end of the wait, and to that of the conversation."""
    if seconds_left is not None:
        yield max(seconds_left, 0.0)
    if wait.until is not None:
        end = datetime.fromisoformat(f"{wait.until}+00:00")
        yield max((end - workflow.now()).total_seconds(), 0.0)


def _summarize(wait: Wait) -> str:
    if wait.question is not None:
        return "the agent goes on without an answer"
    return f"the agent waits {describe_wait(wait.until, wait.signal)}"
