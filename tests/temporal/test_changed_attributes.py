"""The search attributes that a conversation sends to Temporal anew."""

from datetime import UTC, datetime, timedelta

from temporalio.common import SearchAttributePair, TypedSearchAttributes

from perdure.agent.loop.state import State
from perdure.agent.spec import Agent
from perdure.events.usage import Usage
from perdure.temporal.search_attributes import changed_attributes, search_attributes

NOW = datetime(2026, 11, 28, tzinfo=UTC)
STATE = State(spec=Agent(model="openai/gpt-5", tags=("a", "b")), status="running")


def known(state: State) -> TypedSearchAttributes:
    """Return the attributes as Temporal has them, which keeps no empty list."""
    updates = search_attributes("mia", state, NOW)
    pairs = [SearchAttributePair(each.key, each.value) for each in updates if each.value != []]
    return TypedSearchAttributes(pairs)


def changes(before: TypedSearchAttributes, state: State) -> dict[str, object]:
    updates = changed_attributes(before, "mia", state, NOW)
    return {each.key.name.removeprefix("Perdure"): each.value for each in updates}


def test_only_the_time_is_sent_where_nothing_else_changed() -> None:
    assert changes(known(STATE), STATE) == {"LastActivity": NOW}
    untagged = STATE.model_copy(update={"spec": Agent(model="openai/gpt-5")})
    later = changed_attributes(known(untagged), "mia", untagged, NOW + timedelta(seconds=1))
    assert [each.value for each in later] == [NOW + timedelta(seconds=1)]


def test_what_changed_is_sent_and_tags_that_are_gone_are_emptied() -> None:
    agent = Agent(model="anthropic/claude-sonnet-4-5")
    state = STATE.model_copy(
        update={"spec": agent, "status": "finished", "usage": Usage(cost=0.25), "response_count": 3}
    )
    assert changes(known(STATE), state) == {
        "Status": "finished",
        "Model": "anthropic/claude-sonnet-4-5",
        "Tags": [],
        "Steps": 3,
        "CostUsd": 0.25,
        "LastActivity": NOW,
    }


def test_a_conversation_of_which_temporal_knows_only_the_user_sends_all_that_it_has() -> None:
    [user] = [each for each in known(STATE) if each.key.name == "PerdureUser"]
    sent = changes(TypedSearchAttributes([user]), STATE)
    assert sent.keys() == {"Status", "Model", "Tags", "Steps", "CostUsd", "LastActivity"}
    assert (sent["Steps"], sent["CostUsd"]) == (0, 0.0)
