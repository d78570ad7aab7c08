"""The words of an agent that are meant for its user."""

import pytest

from perdure.events.event import AnyEvent, agent_text
from tests.builders import agent, id_of, observation, partial_message, user


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (agent("Done."), "Done."),
        (partial_message("I was ab"), "I was ab"),
        (agent("Quoted.").model_copy(update={"llm_response_id": None}), ""),
        (observation(id_of(2), "finish", "All is well."), "All is well."),
        (observation(id_of(2), "look", "found"), ""),
        (user("Go on."), ""),
    ],
)
def test_the_text_of_an_agent_is_its_messages_and_reports(event: AnyEvent, words: str) -> None:
    assert agent_text(event) == words
