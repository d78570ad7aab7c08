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

    def share_for(self, own_limits: Amount) -> Amount:
        """Compute the amount to reserve for one more sample with its own limits, if not 0."""
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


class Budget:
    """A ledger, and the requests for more that wait until enough is left.

    `requests` has, by holder, the amount it needs in all.
    """

    def __init__(self, ledger: Ledger, requests: dict[str, Amount] | None = None) -> None:
        self.ledger = ledger
        self.requests = dict(requests or {})

    def reserve(self, holder: str, amount: Amount) -> Allowance | None:
        """Set the holder's reservation to `amount` in all; None if not enough is left.

        A smaller amount than before gives the difference back. It includes what the holder has
        already spent, which `settle` books at its end. The allowance has no limit where the batch
        has none.
        """
        before, limit = self._release(holder), self.ledger.limit
        left = before.remaining
        if left.cost is not None and amount.cost > left.cost + COST_TOLERANCE:
            return None
        if left.tokens is not None and amount.tokens > left.tokens:
            return None
        reserved = {**before.reserved, holder: amount}
        self.ledger = before.model_copy(update={"reserved": reserved})
        return Allowance(
            cost=None if limit.cost is None else amount.cost,
            tokens=None if limit.tokens is None else amount.tokens,
        )

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

    def settle(self, holder: str, spent: Amount) -> None:
        """Release the holder's reservation and add its spending, which may exceed it."""
        self.requests.pop(holder, None)
        settled = {"settled": self.ledger.settled + spent, "count": self.ledger.count + 1}
        self.ledger = self._release(holder).model_copy(update=settled)

    def _release(self, holder: str) -> Ledger:
        others = {name: held for name, held in self.ledger.reserved.items() if name != holder}
        return self.ledger.model_copy(update={"reserved": others})

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
