"""Variants of experiments: which one is drawn, and the agent that it makes."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agent.policies import Limits
from perdure.agent.spec import Agent
from perdure.client.experiments import apply_experiments, draw_variant
from perdure.errors import Invalid
from perdure.settings.errors import SettingsError
from perdure.settings.experiments import Experiment
from perdure.settings.settings import Settings
from tests.harness import ConversationHarness, text_answer

TERSE = {"instructions": "Be brief.", "limits": {"max_iterations": 7}}
PROMPTS = Experiment.model_validate(
    {"variants": {"control": {"weight": 3}, "terse": {"agent": TERSE}}}
)
AGENT = Agent(model="openai/gpt-5", limits=Limits(max_budget=5), tags=["blue"])


def drawn(agent: Agent) -> list[str]:
    return [tag for tag in agent.tags if tag.startswith("experiment:")]


def test_variants_are_drawn_by_their_weights() -> None:
    counts = Counter(draw_variant("prompts", PROMPTS, f"c{n}") for n in range(4_000))
    assert 2_850 < counts["control"] < 3_150
    assert counts["control"] + counts["terse"] == 4_000


@given(st.text(max_size=40))
def test_a_draw_is_the_same_each_time_and_that_of_another_experiment_is_its_own(unit: str) -> None:
    even = Experiment.model_validate({"variants": {"a": {}, "b": {}}})
    assert draw_variant("first", even, unit) == draw_variant("first", even, unit)


def test_draws_of_two_experiments_are_independent() -> None:
    even = Experiment.model_validate({"variants": {"a": {}, "b": {}}})
    pairs = Counter(
        (draw_variant("first", even, f"c{n}"), draw_variant("second", even, f"c{n}"))
        for n in range(2_000)
    )
    assert len(pairs) == 4
    assert min(pairs.values()) > 400


def test_a_variant_stands_over_the_agent_and_leaves_a_tag() -> None:
    only = Experiment.model_validate({"variants": {"terse": {"agent": TERSE}}})
    agent = apply_experiments(AGENT, {"prompts": only}, "anna", "c1")
    assert (agent.instructions, agent.limits.max_iterations) == ("Be brief.", 7)
    assert (agent.limits.max_budget, agent.tags) == (5, ("blue", "experiment:prompts=terse"))


def test_a_user_has_one_variant_in_all_conversations() -> None:
    by_user = PROMPTS.model_copy(update={"unit": "user"})
    seen = {
        tuple(drawn(apply_experiments(AGENT, {"prompts": by_user}, "anna", f"c{n}")))
        for n in range(50)
    }
    assert len(seen) == 1


def test_only_named_agents_take_part() -> None:
    named = PROMPTS.model_copy(update={"agents": ("reviewer",)})
    assert drawn(apply_experiments(AGENT, {"prompts": named}, "anna", "c1")) == []
    reviewer = AGENT.model_copy(update={"agent": "reviewer"})
    assert len(drawn(apply_experiments(reviewer, {"prompts": named}, "anna", "c1"))) == 1


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"instruction": "Be brief."}, "did you mean instructions?"),
        ({"limits": {"max_iterations": "many"}}, "max_iterations"),
    ],
)
def test_a_variant_that_fits_no_agent_is_refused(fields: object, says: str) -> None:
    only = Experiment.model_validate({"variants": {"odd": {"agent": fields}}})
    with pytest.raises(Invalid, match="The variant 'odd' of the experiment 'prompts'") as refused:
        apply_experiments(AGENT, {"prompts": only}, "anna", "c1")
    assert says in str(refused.value)
    assert "experiments.prompts.variants.odd.agent" in refused.value.hint


@pytest.mark.parametrize(
    "experiment",
    [{"variants": {}}, {"variants": {"a": {"weight": 0}}}, {"variants": {"a b": {}}}, {"unit": 1}],
)
def test_an_experiment_that_cannot_be_drawn_is_a_bad_setting(experiment: object) -> None:
    with pytest.raises(SettingsError, match=r"experiments\.prompts"):
        Settings(experiments={"prompts": experiment})


async def test_a_conversation_has_its_variant_and_says_so(harness: ConversationHarness) -> None:
    only = Experiment.model_validate({"variants": {"terse": {"agent": TERSE}}})
    harness.client.experiments = {"prompts": only}
    async with harness.worker():
        conversation = await harness.client.start("Hi.", harness.spec(text_answer("Hello.")))
        await conversation.result()
        status = await conversation.status()
    assert status.tags == ("experiment:prompts=terse",)
