"""The spending of a batch: amounts are reserved before they are spent, and settled afterwards.

Settled and reserved amounts together never exceed the limit. The batch itself exceeds it at most by
the unforeseen cost of single answers, which is known only once they have come.
"""

from pydantic import Field

from perdure.agent.loop.attempt import Allowance, AllowanceRequest
from perdure.events.base import Frozen
from perdure.events.usage import Usage

MIN_SETTLED = 5
"""The settled samples needed before reservations follow their mean."""

INITIAL_SHARE = 0.02
"""The share of the limit reserved for a sample until MIN_SETTLED samples are settled."""

RESERVE_FACTOR = 1.5
"""The factor by which a reservation exceeds the mean of the settled samples."""

COST_TOLERANCE = 1e-9


class Amount(Frozen):
    """An amount of US dollars and of tokens, input and output together."""

    cost: float = 0.0
    tokens: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(cost=self.cost + other.cost, tokens=self.tokens + other.tokens)


ZERO = Amount()


def spent_amount(usage: Usage) -> Amount:
    return Amount(cost=usage.cost, tokens=usage.prompt_tokens + usage.completion_tokens)


class Ledger(Frozen):
    """The limit of a batch, and the settled and reserved parts of it."""

    limit: Allowance = Allowance()
    settled: Amount = ZERO
    """The spending of attempts that have ended."""
    count: int = 0
    """The number of attempts that have ended."""
    reserved: dict[str, Amount] = Field(default_factory=dict)
    """The amounts that running attempts may spend, by holder."""

    @property
    def is_unlimited(self) -> bool:
        return self.limit == Allowance()

    @property
    def committed(self) -> Amount:
        return sum(self.reserved.values(), self.settled)

    @property
    def remaining(self) -> Allowance:
        """The part of the limit that is neither settled nor reserved, never below 0."""
        used, limit = self.committed, self.limit
        return Allowance(
            cost=None if limit.cost is None else max(0.0, limit.cost - used.cost),
            tokens=None if limit.tokens is None else max(0, limit.tokens - used.tokens),
        )

    @property
    def is_exhausted(self) -> bool:
        """The limit leaves no amount to reserve."""
        left = self.remaining
        return (left.cost is not None and left.cost <= COST_TOLERANCE) or left.tokens == 0

    def share_for(self, own_limits: Allowance | Amount) -> Amount:
        """Compute the amount to reserve for one more sample with its own limits, if any."""
        if self.count >= MIN_SETTLED:
            cost = RESERVE_FACTOR * self.settled.cost / self.count
            tokens = RESERVE_FACTOR * self.settled.tokens / self.count
        else:
            cost = INITIAL_SHARE * (self.limit.cost or 0)
            tokens = INITIAL_SHARE * (self.limit.tokens or 0)
        return Amount(
            cost=min(cost, own_limits.cost or cost),
            tokens=int(min(tokens, own_limits.tokens or tokens)),
        )


def reserve(ledger: Ledger, holder: str, amount: Amount) -> Ledger | None:
    """Set the holder's reservation to `amount` in all; None if not enough is left.

    A smaller amount than before gives the difference back. It includes what the holder has already
    spent, which `settle` books at its end.
    """
    before = _release(ledger, holder)
    left = before.remaining
    if left.cost is not None and amount.cost > left.cost + COST_TOLERANCE:
        return None
    if left.tokens is not None and amount.tokens > left.tokens:
        return None
    return before.model_copy(update={"reserved": {**before.reserved, holder: amount}})


def settle(ledger: Ledger, holder: str, spent: Amount) -> Ledger:
    """Release the holder's reservation and add its spending, which may exceed the reservation."""
    settled = {"settled": ledger.settled + spent, "count": ledger.count + 1}
    return _release(ledger, holder).model_copy(update=settled)


def _release(ledger: Ledger, holder: str) -> Ledger:
    others = {name: held for name, held in ledger.reserved.items() if name != holder}
    return ledger.model_copy(update={"reserved": others})


def allowance_of(ledger: Ledger, amount: Amount) -> Allowance:
    """Convert an amount to an allowance, unlimited where the batch has no limit."""
    return Allowance(
        cost=None if ledger.limit.cost is None else amount.cost,
        tokens=None if ledger.limit.tokens is None else amount.tokens,
    )


class Budget:
    """A ledger, and the requests for more that wait until enough is left.

    `requests` has, by holder, the amount it needs in all.
    """

    def __init__(self, ledger: Ledger, requests: dict[str, Amount]) -> None:
        self.ledger = ledger
        self.requests = dict(requests)

    def reserve(self, name: str, amount: Amount) -> Allowance | None:
        """Reserve an amount for a holder; None if too little is left."""
        ledger = reserve(self.ledger, name, amount)
        if ledger is None:
            return None
        self.ledger = ledger
        return allowance_of(ledger, amount)

    def reserve_allowance(self, name: str, own_limits: Amount | None) -> Allowance | None:
        """Reserve the allowance of a new attempt; None if too little is left."""
        if self.ledger.is_unlimited:
            return Allowance()
        if self.ledger.is_exhausted:
            return None
        return self.reserve(name, self.ledger.share_for(own_limits or ZERO))

    def request_more(self, request: AllowanceRequest) -> None:
        total = request.needed
        self.requests[request.holder] = Amount(cost=total.cost or 0.0, tokens=total.tokens or 0)

    def settle(self, name: str, spent: Amount) -> None:
        self.requests.pop(name, None)
        self.ledger = settle(self.ledger, name, spent)

    def grant_requests(self) -> dict[str, Allowance]:
        """Grant the waiting requests for which enough is left."""
        granted = {}
        for name, amount in list(self.requests.items()):
            if (allowance := self.reserve(name, amount)) is not None:
                del self.requests[name]
                granted[name] = allowance
        return granted

    def is_deadlocked(self, running: set[str]) -> bool:
        """Tell whether every running attempt waits for more, so that none can return any."""
        return self.requests.keys() >= running

    def set_limit(self, allowed: Allowance) -> None:
        self.ledger = self.ledger.model_copy(update={"limit": allowed})

    def changed_limit(self, cost: float | None, tokens: int | None) -> Allowance:
        """Return the limit with the given parts changed."""
        limit = self.ledger.limit
        return Allowance(cost=cost or limit.cost, tokens=tokens or limit.tokens)

    def sufficient_limit(self) -> Allowance:
        """Compute a limit for a shard of a batch with which the largest request can go on."""
        used, limit = self.ledger.committed, self.ledger.limit
        requests = [ZERO, *self.requests.values()]
        most_cost = used.cost + max(amount.cost for amount in requests)
        most_tokens = used.tokens + max(amount.tokens for amount in requests)
        return Allowance(
            cost=None if limit.cost is None else max(limit.cost * 1.25, most_cost),
            tokens=None if limit.tokens is None else max(limit.tokens * 5 // 4, most_tokens),
        )

    @property
    def spending_text(self) -> str:
        """The settled part of the limit, as text."""
        limit, used = self.ledger.limit, self.ledger.settled
        parts = [f"${used.cost:.4f} of its ${limit.cost:.4f}"] if limit.cost is not None else []
        if limit.tokens is not None:
            parts.append(f"{used.tokens:,} of its {limit.tokens:,} tokens")
        return " and ".join(parts)
