"""Changes to the spec during a conversation, and the errors for invalid ones."""

from typing import Any

import pytest

from perdure.agent.configure import CHANGEABLE_FIELDS, check_changes
from perdure.agent.loop.inbox import json_size
from perdure.agent.loop.state import State
from perdure.agent.policies import Confirmation, Limits, StuckThresholds
from perdure.agent.spec import Agent, AmortizedCondenser, ModelSpec, SummaryCondenser
from perdure.agent.view.condense.thresholds import flatten_condenser
from tests.agent.recording import apply_requests
from tests.builders import SPEC, opened_state

RICH = SPEC.model_copy(
    update={
        "model": ModelSpec(name="large", api_base="https://example.org", temperature=0.5),
        "limits": Limits(max_iterations=5, max_budget=2.0),
        "confirmation": Confirmation(policy="risky", threshold="LOW"),
        "tags": ("blue",),
        "secret_descriptions": {"TICKETS": "reads tickets"},
    }
)


def apply_changes(spec: Agent, **changes: Any) -> Agent:
    """Return the spec in force once the changes are recorded."""
    state = apply_requests(opened_state(spec), check_changes(spec, changes))
    assert state.spec is not None
    assert state.spec_seq == state.next_seq - 1
    return state.spec


def error_of(**changes: Any) -> str:
    """Return the error for these changes."""
    with pytest.raises(ValueError, match=r"[.?]$") as refused:
        check_changes(RICH, changes)
    sentence = str(refused.value)
    assert "\n" not in sentence
    return sentence


def test_only_the_named_limits_change() -> None:
    assert apply_changes(RICH, limits={"max_budget": 9}).limits == Limits(
        max_iterations=5, max_budget=9.0
    )


def test_only_named_fields_of_confirmation_and_stuck_change() -> None:
    risky = apply_changes(RICH, confirmation={"confirm_unknown": False}).confirmation
    assert risky == Confirmation(policy="risky", threshold="LOW", confirm_unknown=False)
    assert apply_changes(RICH, stuck={"monologue": 9}).stuck == StuckThresholds(monologue=9)


def test_a_limit_can_be_lifted() -> None:
    assert apply_changes(RICH, limits={"max_budget": None}).limits == Limits(max_iterations=5)


def test_a_bare_text_names_a_model() -> None:
    assert apply_changes(RICH, model="small").model == ModelSpec(name="small")


def test_a_model_keeps_its_other_fields_unless_it_is_another() -> None:
    warmer = ModelSpec(name="large", api_base="https://example.org", temperature=1.0)
    assert apply_changes(RICH, model={"temperature": 1}).model == warmer
    assert apply_changes(RICH, model={"name": "small", "timeout": 9}).model == ModelSpec(
        name="small", timeout=9.0
    )


def test_other_fields_are_replaced_whole() -> None:
    assert apply_changes(RICH, tags=["green", "red"]).tags == ("green", "red")
    assert apply_changes(RICH, tags=[]).tags == ()
    fallbacks = [{"name": "a"}, {"name": "b", "temperature": 0}]
    assert apply_changes(RICH, fallbacks=fallbacks).fallbacks == (
        ModelSpec(name="a"),
        ModelSpec(name="b", temperature=0.0),
    )
    condenser = {"kind": "amortized", "max_size": 9}
    assert apply_changes(RICH, condenser=condenser).condenser == AmortizedCondenser(max_size=9)


def test_unnamed_fields_stay_as_they_are() -> None:
    now = apply_changes(RICH, parallel=2)
    assert now == RICH.model_copy(update={"parallel": 2})


def test_several_changes_go_together() -> None:
    now = apply_changes(RICH, model="small", parallel=1, analyzers=["rules"])
    assert (now.model.name, now.parallel, now.analyzers) == ("small", 1, ("rules",))


def test_one_change_builds_on_the_other() -> None:
    state: State = opened_state(RICH)
    for changes in ({"limits": {"max_budget": 9}}, {"limits": {"max_tokens": 7}}, {"tags": ["x"]}):
        assert state.spec is not None
        state = apply_requests(state, check_changes(state.spec, changes))
    assert state.spec is not None
    assert state.spec.limits == Limits(max_iterations=5, max_budget=9.0, max_tokens=7)
    assert (state.spec.tags, state.spec.confirmation) == (("x",), RICH.confirmation)


def test_only_what_changes_is_put_down() -> None:
    assert set(check_changes(RICH, {"parallel": 2}).changes) == {"parallel"}
    assert json_size(check_changes(RICH, {"parallel": 2})) < 60


@pytest.mark.parametrize("field", sorted(set(Agent.model_fields) - set(CHANGEABLE_FIELDS)))
def test_what_the_agent_was_told_stands(field: str) -> None:
    assert error_of(**{field: None}).startswith(
        f"{field!r} cannot be changed: use model, fallbacks,"
    )


def test_every_field_that_can_be_changed_is_one() -> None:
    assert set(CHANGEABLE_FIELDS) <= set(Agent.model_fields)
    for field in CHANGEABLE_FIELDS:
        value = RICH.model_dump(mode="json").get(field)  # a dump leaves out what is empty
        assert apply_changes(RICH, **{field: value}) == RICH


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
        ({"condenser": {"kind": "magic"}}, "condenser: "),
    ],
)
def test_what_does_not_fit_is_told(changes: dict[str, Any], words: str) -> None:
    sentence = error_of(**changes)
    assert sentence.startswith("The change does not fit (")
    assert words in sentence


@pytest.mark.parametrize(
    ("changes", "stray"),
    [
        ({"limits": {"max_cost": 1}}, "An agent has no 'limits.max_cost'"),
        ({"model": {"api_key": "secret"}}, "An agent has no 'model.api_key'"),
        (
            {"model": {"name": "m", "temprature": 1}},
            "An agent has no 'model.temprature': did",
        ),
        ({"condenser": {"kind": "recent", "max_size": 9}}, "An agent has no 'condenser.max_size'"),
        ({"speed": 9}, "'speed' cannot be changed: use "),
    ],
)
def test_a_field_that_nobody_knows_is_not_passed_over(changes: dict[str, Any], stray: str) -> None:
    assert error_of(**changes).startswith(stray)


def test_the_usual_condenser_can_be_set_back() -> None:
    summary = SummaryCondenser(max_size=9, keep_first=4)
    for sizes in ({"max_size": 9}, {"kind": "default", "max_size": 9}):
        *_, last = flatten_condenser(apply_changes(RICH, condenser=sizes).condenser)
        assert last == summary
    assert apply_changes(RICH, condenser="default").condenser == Agent(model="m").condenser


def test_another_repository_is_not_sent_the_token_of_the_first() -> None:
    first = {"repository": "https://a.org/b", "branch": "dev", "repository_token": "TOKEN"}
    cloned = apply_changes(SPEC, **first)
    same = apply_changes(cloned, repository="https://a.org/b")
    assert (same.branch, same.repository_token) == ("dev", "TOKEN")
    other = apply_changes(cloned, repository="https://c.org/d")
    assert (other.repository, other.branch, other.repository_token) == (
        *("https://c.org/d", None, None),
    )


def test_secrets_change_with_what_they_are_for() -> None:
    spec = apply_changes(RICH, secrets={"TICKETS": "reads tickets", "OTHER": ""})
    assert spec.secrets == ("TICKETS", "OTHER")
    assert spec.secret_descriptions == {"TICKETS": "reads tickets"}
    assert apply_changes(spec, secret_descriptions={}).secret_descriptions == {}
