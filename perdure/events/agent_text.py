"""The words of an agent that are meant for its user."""

from perdure.events.content import join_text
from perdure.events.event import AnyEvent
from perdure.events.messages import MessageEvent
from perdure.events.observations import FinishObservation
from perdure.events.tools import ObservationEvent


def agent_text(event: AnyEvent) -> str:
    """The text of an agent's message or `finish` report; "" for every other event.

    A message that quotes an earlier one has no response of a model behind it and does not count,
    unless it is the part of an answer that an interrupt left.
    """
    match event:
        case MessageEvent(source="agent", llm_response_id=None, sender=sender):
            return join_text(event.llm_message.content) if sender == "interrupted" else ""
        case MessageEvent(source="agent"):
            return join_text(event.llm_message.content)
        case ObservationEvent(observation=FinishObservation(content=content)):
            return join_text(content)
        case _:
            return ""
