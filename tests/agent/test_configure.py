"""What can be changed while the conversation goes on, and what somebody who errs is told."""

from typing import Any

import pytest

from agent.configure import FIELDS, changed
from agent.inbox import weight
from agent.spec import (
    AmortizedCondenser,
    Confirmation,
    Limits,
    ModelSpec,
    Spec,
    StuckThresholds,
    SummaryCondenser,
)
from agent.state import State
from tests.agent.recording import asked
from tests.builders import SPEC, opening

RICH = SPEC.model_copy(
    update={
        "model": ModelSpec(name="large", api_base="https://example.org", temperature=0.5),
        "limits": Limits(max_iterations=5, max_budget=2.0),
        "confirmation": Confirmation(policy="risky", threshold="LOW"),
        "tags": ("blue",),
    }
)


def then(spec: Spec, **changes: Any) -> Spec:
    """The spec in force once the changes have been asked for and recorded."""
    state = asked(opening(spec), changed(spec, changes))
    assert state.spec is not None
    assert state.spec_seq == state.next_seq - 1
    return state.spec


def told(**changes: Any) -> str:
    """What somebody is told who asks for this."""
    with pytest.raises(ValueError, match=r"\.$") as refused:
        changed(RICH, changes)
    sentence = str(refused.value)
    assert "\n" not in sentence
    return sentence


def test_of_limits_only_what_is_named_changes() -> None:
    assert then(RICH, limits={"max_budget": 9}).limits == Limits(max_iterations=5, max_budget=9.0)


def test_of_confirmation_and_stuck_too() -> None:
    risky = then(RICH, confirmation={"confirm_unknown": False}).confirmation
    assert risky == Confirmation(policy="risky", threshold="LOW", confirm_unknown=False)
    assert then(RICH, stuck={"monologue": 9}).stuck == StuckThresholds(monologue=9)


def test_a_limit_can_be_lifted() -> None:
    assert then(RICH, limits={"max_budget": None}).limits == Limits(max_iterations=5)


def test_a_bare_text_names_a_model() -> None:
    assert then(RICH, model="small").model == ModelSpec(name="small")


def test_a_model_keeps_its_other_fields_unless_it_is_another() -> None:
    warmer = ModelSpec(name="large", api_base="https://example.org", temperature=1.0)
    assert then(RICH, model={"temperature": 1}).model == warmer
    assert then(RICH, model={"name": "small", "timeout": 9}).model == ModelSpec(
        name="small", timeout=9.0
    )


def test_other_fields_are_given_whole() -> None:
    assert then(RICH, tags=["green", "red"]).tags == ("green", "red")
    assert then(RICH, tags=[]).tags == ()
    fallbacks = [{"name": "a"}, {"name": "b", "temperature": 0}]
    assert then(RICH, fallbacks=fallbacks).fallbacks == (
        ModelSpec(name="a"),
        ModelSpec(name="b", temperature=0.0),
    )
    condenser = {"kind": "amortized", "max_size": 9}
    assert then(RICH, condenser=condenser).condenser == AmortizedCondenser(max_size=9)


def test_what_is_not_named_stays_as_it_is() -> None:
    now = then(RICH, parallel=2)
    assert now == RICH.model_copy(update={"parallel": 2})


def test_several_changes_go_together() -> None:
    now = then(RICH, model="small", parallel=1, analyzers=["rules"])
    assert (now.model.name, now.parallel, now.analyzers) == ("small", 1, ("rules",))


def test_one_change_builds_on_the_other() -> None:
    state: State = opening(RICH)
    for changes in ({"limits": {"max_budget": 9}}, {"limits": {"max_tokens": 7}}, {"tags": ["x"]}):
        assert state.spec is not None
        state = asked(state, changed(state.spec, changes))
    assert state.spec is not None
    assert state.spec.limits == Limits(max_iterations=5, max_budget=9.0, max_tokens=7)
    assert (state.spec.tags, state.spec.confirmation) == (("x",), RICH.confirmation)


def test_only_what_changes_is_put_down() -> None:
    assert set(changed(RICH, {"parallel": 2}).changes) == {"parallel"}
    assert weight(changed(RICH, {"parallel": 2})) < 60


@pytest.mark.parametrize("field", sorted(set(Spec.model_fields) - set(FIELDS)))
def test_what_the_agent_was_told_stands(field: str) -> None:
    assert told(**{field: None}).startswith(f"{field!r} cannot be changed: use model, fallbacks,")


def test_every_field_that_can_be_changed_is_one() -> None:
    assert set(FIELDS) <= set(Spec.model_fields)
    for field in FIELDS:
        assert then(RICH, **{field: RICH.model_dump(mode="json")[field]}) == RICH


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"limits": {"max_iterations": "many"}}, "limits.max_iterations: "),
        ({"limits": {"deadline": "tomorrow"}}, "limits.deadline: "),
        ({"limits": 7}, "limits: "),
        ({"model": {"name": None}}, "model.name: "),
        ({"model": None}, "model: "),
        ({"parallel": "x"}, "parallel: "),
        ({"tags": "x"}, "tags: "),
        ({"confirmation": {"policy": "sometimes"}}, "confirmation.policy: "),
        ({"confirmation": {"threshold": "UNKNOWN"}}, "confirmation.threshold: "),
        ({"condenser": {"max_size": 9}}, "condenser: "),
        ({"condenser": {"kind": "magic"}}, "condenser: "),
    ],
)
def test_what_does_not_fit_is_told(changes: dict[str, Any], words: str) -> None:
    sentence = told(**changes)
    assert sentence.startswith("The change does not fit (")
    assert words in sentence


@pytest.mark.parametrize(
    ("changes", "stray"),
    [
        ({"limits": {"max_cost": 1}}, "`limits` has no 'max_cost'."),
        ({"model": {"api_key": "secret"}}, "`model` has no 'api_key'."),
        ({"model": {"name": "m", "temprature": 1}}, "`model` has no 'temprature'."),
        ({"condenser": {"kind": "recent", "max_size": 9}}, "`condenser` has no 'max_size'."),
        ({"speed": 9}, "'speed' cannot be changed: use "),
    ],
)
def test_a_field_that_nobody_knows_is_not_passed_over(changes: dict[str, Any], stray: str) -> None:
    assert told(**changes).startswith(stray)


def test_the_usual_condenser_can_be_set_back() -> None:
    assert then(RICH, condenser={"kind": "llm_summary"}).condenser == SummaryCondenser()
