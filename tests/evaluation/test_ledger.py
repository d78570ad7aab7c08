"""Reserved and settled amounts exceed the limit only by the unforeseen cost of single answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agent.loop.attempt import Allowance, AllowanceRequest
from perdure.evaluation.ledger import ZERO, Amount, Budget, Ledger

LIMIT = Ledger(limit=Allowance(cost=1.0, tokens=1000))

amounts = st.builds(Amount, cost=st.floats(0, 0.6), tokens=st.integers(0, 600))
deeds = st.lists(st.tuples(st.sampled_from(["reserve", "settle"]), st.integers(0, 5), amounts))


@given(deeds)
def test_a_reservation_never_exceeds_the_limit(steps: list[tuple[str, int, Amount]]) -> None:
    budget = Budget(LIMIT)
    for deed, holder, amount in steps:
        name = str(holder)
        if deed == "reserve":
            budget.reserve(name, amount)
        else:  # nobody spends more here than was reserved
            budget.settle(name, budget.ledger.reserved.get(name, ZERO))
        assert budget.ledger.committed.cost <= 1.0 + 1e-6
        assert budget.ledger.committed.tokens <= 1000


def test_an_unspent_reservation_returns_to_the_others() -> None:
    budget = Budget(LIMIT)
    assert budget.reserve("a", Amount(cost=0.9)) == Allowance(cost=0.9, tokens=0)
    assert budget.reserve("b", Amount(cost=0.2)) is None
    budget.settle("a", Amount(cost=0.5))
    assert budget.ledger.remaining.cost == pytest.approx(0.5)
    assert budget.reserve("b", Amount(cost=0.2)) is not None


def test_a_second_reservation_replaces_the_holders_first() -> None:
    budget = Budget(LIMIT)
    assert budget.reserve("a", Amount(cost=0.6)) is not None
    assert budget.reserve("a", Amount(cost=0.9)) is not None
    assert budget.ledger.remaining.cost == pytest.approx(0.1)


def test_an_unforeseen_cost_exhausts_the_ledger() -> None:
    budget = Budget(LIMIT)
    budget.settle("a", Amount(cost=1.2, tokens=10))
    assert budget.ledger.is_exhausted
    assert (budget.ledger.remaining.cost, budget.ledger.remaining.tokens) == (0.0, 990)


def test_a_ledger_without_a_limit_allows_any_spending() -> None:
    budget = Budget(Ledger())
    assert budget.reserve("a", Amount(cost=1e9, tokens=10**12)) == Allowance()
    assert not budget.ledger.is_exhausted


def test_a_share_follows_the_mean_and_the_samples_own_limit() -> None:
    first = LIMIT.share_for(ZERO)
    assert first.cost == pytest.approx(0.02)
    assert first.tokens == 20
    budget = Budget(LIMIT)
    for name in "abcde":
        budget.settle(name, Amount(cost=0.1, tokens=100))
    assert budget.ledger.share_for(ZERO).cost == pytest.approx(0.15)
    assert budget.ledger.share_for(Amount(cost=0.05)).cost == 0.05


def test_a_request_for_more_waits_until_others_return_budget() -> None:
    budget = Budget(LIMIT)
    most = Amount(cost=0.5, tokens=500)
    for _ in range(5):
        budget.settle("before", Amount(cost=0.1, tokens=10))
    assert budget.reserve_allowance("a", most) is not None
    assert budget.reserve_allowance("b", most) is not None
    spent = Allowance(cost=0.2, tokens=1)
    budget.request_more(
        AllowanceRequest(holder="a", spent=spent, needed=Allowance(cost=0.4, tokens=20))
    )
    assert budget.grant_requests() == {}
    assert not budget.is_deadlocked({"a", "b"})
    budget.settle("b", ZERO)
    assert budget.grant_requests() == {"a": Allowance(cost=0.4, tokens=20)}
    assert budget.requests == {}


@pytest.mark.parametrize(
    ("limit", "unlimited"),
    [
        (Allowance(), True),
        (Allowance(cost=1), False),
        (Allowance(tokens=1), False),
        (Allowance(cost=1, tokens=1), False),
    ],
)
def test_a_ledger_is_unlimited_with_neither_limit(limit: Allowance, unlimited: bool) -> None:
    assert Ledger(limit=limit).is_unlimited is unlimited


def test_a_sufficient_limit_is_a_quarter_more_or_what_the_largest_request_needs() -> None:
    budget = Budget(Ledger(limit=Allowance(cost=2.0, tokens=400)))
    assert budget.sufficient_limit() == Allowance(cost=2.5, tokens=500)
    large = Budget(budget.ledger, {"a": Amount(cost=9.0, tokens=1), "b": Amount(cost=1.0)})
    assert large.sufficient_limit() == Allowance(cost=9.0, tokens=500)


def test_a_budget_is_deadlocked_when_every_running_attempt_waits() -> None:
    budget = Budget(LIMIT)
    assert budget.reserve_allowance("a", None) is not None
    budget.request_more(
        AllowanceRequest(holder="a", spent=Allowance(cost=0.1), needed=Allowance(cost=5.0))
    )
    assert budget.grant_requests() == {}
    assert budget.is_deadlocked({"a"})
    budget.set_limit(budget.changed_limit(6.0, None))
    assert budget.grant_requests() == {"a": Allowance(cost=5.0, tokens=0)}
