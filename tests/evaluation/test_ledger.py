"""What is reserved and settled never passes the limit, but by what single answers cost too much."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.trial import Allowance, AllowanceAsked
from evaluation.budget import Budget
from evaluation.ledger import NOTHING, Amount, Ledger, reserve, settle

LIMIT = Ledger(limit=Allowance(cost=1.0, tokens=1000))

amounts = st.builds(Amount, cost=st.floats(0, 0.6), tokens=st.integers(0, 600))
deeds = st.lists(st.tuples(st.sampled_from(["reserve", "settle"]), st.integers(0, 5), amounts))


@given(deeds)
def test_what_is_reserved_is_there(steps: list[tuple[str, int, Amount]]) -> None:
    ledger = LIMIT
    for deed, holder, amount in steps:
        name = str(holder)
        if deed == "reserve":
            ledger = reserve(ledger, name, amount) or ledger
        else:  # nobody spends more here than was reserved
            ledger = settle(ledger, name, ledger.reserved.get(name, NOTHING))
        assert ledger.committed.cost <= 1.0 + 1e-6
        assert ledger.committed.tokens <= 1000


def test_what_is_not_spent_is_there_for_others() -> None:
    ledger = reserve(LIMIT, "a", Amount(cost=0.9))
    assert ledger is not None
    assert reserve(ledger, "b", Amount(cost=0.2)) is None
    ledger = settle(ledger, "a", Amount(cost=0.5))
    assert reserve(ledger, "b", Amount(cost=0.2)) is not None
    assert ledger.left.cost == pytest.approx(0.5)


def test_more_of_the_same_holder_replaces_what_it_had() -> None:
    ledger = reserve(LIMIT, "a", Amount(cost=0.6))
    assert ledger is not None
    ledger = reserve(ledger, "a", Amount(cost=0.9))
    assert ledger is not None
    assert ledger.left.cost == pytest.approx(0.1)


def test_an_answer_that_cost_too_much_breaches_and_nothing_is_left() -> None:
    ledger = settle(LIMIT, "a", Amount(cost=1.2, tokens=10))
    assert ledger.is_breached
    assert (ledger.left.cost, ledger.left.tokens) == (0.0, 990)


def test_without_a_limit_anything_may_be_spent() -> None:
    ledger = reserve(Ledger(), "a", Amount(cost=1e9, tokens=10**12))
    assert ledger is not None
    assert not ledger.is_breached


def test_a_share_follows_what_others_took_and_the_samples_own_limit() -> None:
    first = LIMIT.share(Allowance())
    assert first.cost == pytest.approx(0.02)
    assert first.tokens == 20
    ledger = LIMIT
    for name in "abcde":
        ledger = settle(ledger, name, Amount(cost=0.1, tokens=100))
    assert ledger.share(Allowance()).cost == pytest.approx(0.15)
    assert ledger.share(Allowance(cost=0.05)).cost == 0.05


def test_who_asks_waits_until_others_give_back() -> None:
    budget = Budget(LIMIT, {})
    most = Amount(cost=0.5, tokens=500)
    for _ in range(5):
        budget.end("before", Amount(cost=0.1, tokens=10))
    assert budget.begin("a", most) is not None
    assert budget.begin("b", most) is not None
    spent = Allowance(cost=0.2, tokens=1)
    budget.ask(AllowanceAsked(holder="a", spent=spent, wanted=Allowance(cost=0.4, tokens=20)))
    assert budget.grants() == {}
    assert not budget.is_all_there_is({"a", "b"})
    budget.end("b", NOTHING)
    assert budget.grants() == {"a": Allowance(cost=0.4, tokens=20)}
    assert budget.asking == {}


def test_when_all_who_run_ask_nobody_can_give_back() -> None:
    budget = Budget(LIMIT, {})
    assert budget.begin("a", None) is not None
    budget.ask(AllowanceAsked(holder="a", spent=Allowance(cost=0.1), wanted=Allowance(cost=5.0)))
    assert budget.grants() == {}
    assert budget.is_all_there_is({"a"})
    budget.limit(budget.raised(6.0, None))
    assert budget.grants() == {"a": Allowance(cost=5.0, tokens=0)}
