"""Requests of an attempt to its batch for a larger allowance."""

from datetime import timedelta
from typing import Any, Protocol

from pydantic import ValidationError
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from perdure.agent.loop.attempt import Allowance, AllowanceRequest
from perdure.agent.loop.inbox import InboxItem
from perdure.agent.loop.sample_steps import spent_allowance
from perdure.agent.loop.start import Start
from perdure.agent.loop.state import State

REQUEST_INTERVAL = timedelta(hours=1)
"""Time before a request is repeated, as the batch may have been started anew."""


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
    parent = workflow.info().parent
    if parent is not None:
        request = AllowanceRequest(
            holder=requester.conversation_id,
            spent=spent_allowance(requester.state.usage),
            needed=required,
        )
        batch = workflow.get_external_workflow_handle(parent.workflow_id)
        try:
            await batch.signal("ask", request)
        except ApplicationError:
            workflow.logger.info("the batch of %s does not run", requester.conversation_id)
    timeout = (
        REQUEST_INTERVAL
        if seconds_left is None
        else min(REQUEST_INTERVAL, timedelta(seconds=seconds_left))
    )
    try:
        await workflow.wait_condition(
            lambda: requester.start.attempt is not before or bool(requester.inbox), timeout=timeout
        )
    except TimeoutError:
        return


def parse_allowance(sent: Any) -> Allowance | None:
    """Parse a granted allowance; return None if it is invalid, as anybody may signal."""
    try:
        return Allowance.model_validate(sent)
    except ValidationError:
        return None
