"""What a conversation is doing at this moment: the words of its steps while they grow."""

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.failure.v1 import Failure
from temporalio.api.workflow.v1 import PendingActivityInfo

from agent.lanes import AGAIN
from client.errors import Unreachable
from client.failed import news_of, reason_of
from client.remote import Remote

PAUSE = 0.25
"""Seconds between two looks at a step at work: as often as it tells its news."""

LONGEST_PAUSE = 1.0
"""Seconds between two looks where nothing is at work."""

UNBEGUN = PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED


class Growing(NamedTuple):
    """A step at work, such as `llm.chat` or `tool.call`, and the end of what it has said by now.

    A later `attempt` begins its text again; `failure` is why the one before it came to nothing.
    The events that come of it have `run_id` and `activity_id` as their origin.
    """

    kind: str
    activity_id: str
    attempt: int
    text: str
    run_id: str
    failure: str | None = None


async def live(remote: Remote) -> AsyncIterator[tuple[Growing, ...]]:
    """All steps at work, whenever there is news of them; without end.

    A Temporal that does not answer has no news.
    """
    known: tuple[Growing, ...] = ()
    pause = PAUSE
    while True:
        try:
            now = await growing(remote)
        except Unreachable:
            now = ()
        if now != known:
            yield now
        known, pause = now, PAUSE if now else min(2 * pause, LONGEST_PAUSE)
        await asyncio.sleep(pause)


async def growing(remote: Remote) -> tuple[Growing, ...]:
    """All steps at work at this moment. Raises Unreachable."""
    told = await remote.described()
    if told is None:
        return ()
    run_id = told.workflow_execution_info.execution.run_id
    steps = [
        Growing(
            kind=step.activity_type.name,
            activity_id=step.activity_id.rstrip(AGAIN),
            attempt=step.attempt,
            text=await _text(remote, step),
            run_id=run_id,
            failure=await _reason(remote, step.last_failure),
        )
        for step in told.pending_activities
    ]
    return tuple(steps)


async def _text(remote: Remote, step: PendingActivityInfo) -> str:
    """The newest words of this attempt."""
    if step.state == UNBEGUN:
        return ""
    return str((await news_of(remote, step)).get("text", ""))


async def _reason(remote: Remote, failure: Failure) -> str | None:
    """Why the attempt before came to nothing."""
    return (await reason_of(remote, failure))[0] if failure.message else None
