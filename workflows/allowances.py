"""How a sample asks its batch for more to spend, and waits."""

from datetime import timedelta
from typing import Any, Protocol

from pydantic import ValidationError
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from agent.inbox import Item
from agent.start import Start
from agent.state import State
from agent.trial import Allowance, AllowanceAsked
from agent.trying import spent_of

AGAIN = timedelta(hours=1)
"""How soon a batch is asked again that has not answered: it may have been begun anew."""


class Asker(Protocol):
    conversation_id: str
    start: Start
    state: State
    inbox: list[Item]


async def ask(asker: Asker, short_of: Allowance, seconds_left: float | None) -> None:
    """Ask for more, and wait until there is more, or something else to do, or no time left."""
    before = asker.start.trial
    parent = workflow.info().parent
    if parent is not None:
        asked = AllowanceAsked(
            holder=asker.conversation_id, spent=spent_of(asker.state), wanted=short_of
        )
        batch = workflow.get_external_workflow_handle(parent.workflow_id)
        try:
            await batch.signal("ask", asked)
        except ApplicationError:
            workflow.logger.info("the batch of %s does not run", asker.conversation_id)
    patience = AGAIN if seconds_left is None else min(AGAIN, timedelta(seconds=seconds_left))
    try:
        await workflow.wait_condition(
            lambda: asker.start.trial is not before or bool(asker.inbox), timeout=patience
        )
    except TimeoutError:
        return


def allowance_of(sent: Any) -> Allowance | None:
    """What was granted; None where it makes no sense, as from somebody at a terminal."""
    try:
        return Allowance.model_validate(sent)
    except ValidationError:
        return None
