"""Requests of an attempt to its batch for a larger allowance."""

from contextlib import suppress
from typing import Any, Protocol

from pydantic import ValidationError
from temporalio import workflow

from perdure.agent.loop.attempt import Allowance, AllowanceRequest
from perdure.agent.loop.inbox import InboxItem
from perdure.agent.loop.sample_steps import spent_allowance
from perdure.agent.loop.start import Start
from perdure.agent.loop.state import State
from perdure.workflows.batch.background import signal_workflow

REQUEST_INTERVAL = 3600.0
"""Seconds before a request is repeated, as the batch may have been started anew."""


class Requester(Protocol):
    conversation_id: str
    start: Start
    state: State
    inbox: list[InboxItem]


async def await_allowance(
    requester: Requester, required: Allowance, seconds_left: float | None
) -> None:
    """Request a larger allowance; wait for it, for something else to do, or for the deadline."""
    before = requester.start.attempt
    if (parent := workflow.info().parent) is not None:
        spent, holder = spent_allowance(requester.state.usage), requester.conversation_id
        request = AllowanceRequest(holder=holder, spent=spent, needed=required)
        await signal_workflow(parent.workflow_id, "ask", request)
    timeout = REQUEST_INTERVAL if seconds_left is None else min(REQUEST_INTERVAL, seconds_left)
    with suppress(TimeoutError):
        await workflow.wait_condition(
            lambda: requester.start.attempt is not before or bool(requester.inbox), timeout=timeout
        )


def parse_allowance(sent: Any) -> Allowance | None:
    """Parse a granted allowance; return None if it is invalid, as anybody may signal."""
    try:
        return Allowance.model_validate(sent)
    except ValidationError:
        return None
