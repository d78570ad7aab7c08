"""The spec of a discussion, as a table."""

from typing import Any

import pytest

from perdure.agent.discussion.spec import DiscussionSpec, outline, parse_discussion
from perdure.errors import Invalid

TABLE: dict[str, Any] = {
    "topic": "Four days?",
    "agent": {"model": "openai/gpt-5", "tools": ["think"]},
    "agents": [
        {"id": "ada", "persona": "You count."},
        {"id": "bob", "model": "scripted:bob.json", "tools": []},
    ],
    "moderator": {"policy": "model"},
    "phases": [{"name": "talk", "speakers": ["bob"]}, {"name": "decision", "end": "vote"}],
}


def test_agents_and_a_moderating_model_have_what_all_share_but_what_they_say_themselves() -> None:
    spec = parse_discussion(TABLE)
    ada, bob = (it.agent for it in spec.agents)
    assert (ada.model.name, ada.tools) == ("openai/gpt-5", ("think",))
    assert (bob.model.name, bob.tools) == ("scripted:bob.json", ())
    assert spec.moderator.agent is not None
    assert (spec.moderator.agent.model.name, spec.moderator.agent.tools) == ("openai/gpt-5", ())


def test_an_agent_of_a_table_has_no_tools_unless_they_are_named() -> None:
    spec = parse_discussion({"topic": "t", "agents": [{"id": "ada", "model": "m"}]})
    assert spec.agents[0].agent.tools == ()


def test_a_spec_is_read_back_from_its_json() -> None:
    spec = parse_discussion(TABLE)
    assert DiscussionSpec.model_validate_json(spec.model_dump_json(exclude_none=True)) == spec


def test_the_outline_names_all_speakers_and_no_prompts() -> None:
    plan = outline(parse_discussion(TABLE))
    assert [phase.speakers for phase in plan.phases] == [("bob",), ("ada", "bob")]
    assert plan.has_model
    assert "You count" not in plan.model_dump_json()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"topic": ""}, "topic"),
        ({"agents": []}, "agents"),
        ({"agents": [{"id": "moderator"}]}, "no agent may be called moderator"),
        ({"agents": [{"id": "a"}, {"id": "a"}]}, "two agents are called a"),
        ({"phases": [{"name": "a"}, {"name": "a"}]}, "two phases are called a"),
        ({"phases": [{"name": "end"}]}, "no phase may be called end"),
        ({"phases": [{"name": "a", "speakers": ["eve"]}]}, "names eve, who is no agent"),
        ({"phases": [{"name": "a", "options": ["Yes", "yes"]}]}, "two options at least"),
        ({"moderator": {"policy": "model"}, "agent": {}}, "model"),
        ({"prune": {"type": "byLuck"}}, "prune"),
        ({"agents": [{"id": "a", "mood": "calm"}]}, "no 'mood'"),
    ],
)
def test_what_is_no_discussion_is_refused_in_a_sentence(
    change: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(Invalid, match=sentence):
        parse_discussion({**TABLE, **change})
