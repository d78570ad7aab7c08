"""The current details of a conversation in the Temporal UI."""

from perdure.agent.loop.state import State
from perdure.agent.spec import Agent
from perdure.events.usage import Usage
from perdure.temporal.search_attributes import status_markdown


def test_the_details_of_a_new_conversation_leave_out_what_is_not_known() -> None:
    assert status_markdown("c", "u", State()).splitlines() == [
        "- status: **idle**",
        "- turn: 0, 0 answers of the model in it",
        "- events: 0, of which 0 in view",
        "- tokens: 0 in, 0 out",
        "- cost: $0.0000",
        "- log: users/u/conversations/c/",
    ]


def test_the_details_name_title_reason_model_tokens_and_cost() -> None:
    state = State(
        spec=Agent(model="openai/gpt-5"),
        status="error",
        reason="r" * 10_000,
        title="Sums",
        usage=Usage(prompt_tokens=12345, completion_tokens=6, cost=0.25),
    )
    lines = status_markdown("c", "u", state).splitlines()
    assert lines[0].startswith("- status: **error** (rrr")
    assert len(lines[0]) < 3_000
    assert lines[1] == "- title: Sums"
    assert "- model: openai/gpt-5" in lines
    assert "- tokens: 12,345 in, 6 out" in lines
    assert "- cost: $0.2500" in lines
