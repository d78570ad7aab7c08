"""The inputs of the workflow that a schedule starts, and of its activities."""

from perdure.agent.spec import Agent
from perdure.events.base import Frozen

FIRE, SURVEY, INTERRUPT = "schedule.fire", "schedule.survey", "schedule.interrupt"
"""The activities: begin a turn, tell whether it goes on, and end it."""


class FiringOrder(Frozen):
    """The input of a firing: the turn that a schedule begins at each of its times."""

    user_id: str
    name: str
    text: str
    agent: Agent | None = None
    """The agent of a new conversation; None where the message is sent to `conversation_id`."""
    conversation_id: str | None = None
    waits: bool = True
    """Whether the workflow runs for as long as the turn goes on, as an overlap policy needs it."""
    earlier_id: str | None = None
    """The conversation whose turn an earlier run of the workflow has begun."""


class FiringKey(Frozen):
    """The conversation of a firing."""

    user_id: str
    conversation_id: str
