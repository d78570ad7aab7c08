"""The budget of a running batch: allowances of its attempts, and their requests for more."""

from perdure.agent.loop.attempt import Allowance, AllowanceRequest
from perdure.evaluation.ledger import Amount, Ledger, allowance_of, reserve, settle


class Budget:
    """A ledger, and the requests for more that wait until enough is left.

    `requests` has, by holder, the amount it needs in all.
    """

    def __init__(self, ledger: Ledger, asking: dict[str, Amount]) -> None:
        self.ledger = ledger
        self.requests = dict(asking)

    def reserve_allowance(self, name: str, own_limits: Amount | None) -> Allowance | None:
        """Reserve the allowance of a new attempt; None if too little is left."""
        if self.ledger.is_unlimited:
            return Allowance()
        cost = own_limits.cost if own_limits else 0.0
        tokens = own_limits.tokens if own_limits else 0
        share = self.ledger.share_for(Allowance(cost=cost or None, tokens=tokens or None))
        ledger = None if self.ledger.is_exhausted else reserve(self.ledger, name, share)
        if ledger is None:
            return None
        self.ledger = ledger
        return allowance_of(ledger, share)

    def request_more(self, request: AllowanceRequest) -> None:
        total = request.needed
        self.requests[request.holder] = Amount(cost=total.cost or 0.0, tokens=total.tokens or 0)

    def settle(self, name: str, spent: Amount) -> None:
        self.requests.pop(name, None)
        self.ledger = settle(self.ledger, name, spent)

    def grant_requests(self) -> dict[str, Allowance]:
        """Grant the waiting requests for which enough is left."""
        granted: dict[str, Allowance] = {}
        for name, amount in list(self.requests.items()):
            ledger = reserve(self.ledger, name, amount)
            if ledger is not None:
                self.ledger = ledger
                del self.requests[name]
                granted[name] = allowance_of(ledger, amount)
        return granted

    def is_deadlocked(self, running: set[str]) -> bool:
        """Tell whether every running attempt waits for more, so that none can return any."""
        return self.requests.keys() >= running

    def set_limit(self, allowed: Allowance) -> None:
        self.ledger = self.ledger.model_copy(update={"limit": allowed})

    def changed_limit(self, cost: float | None, tokens: int | None) -> Allowance:
        """Return the limit with the given parts changed."""
        limit = self.ledger.limit
        return Allowance(
            cost=limit.cost if cost is None else cost,
            tokens=limit.tokens if tokens is None else tokens,
        )

    def sufficient_limit(self) -> Allowance:
        """Compute a limit for a shard of a batch with which the largest request can go on."""
        used, limit = self.ledger.committed, self.ledger.limit
        cost = max((amount.cost for amount in self.requests.values()), default=0.0)
        tokens = max((amount.tokens for amount in self.requests.values()), default=0)
        return Allowance(
            cost=None if limit.cost is None else max(limit.cost * 1.25, used.cost + cost),
            tokens=None
            if limit.tokens is None
            else max(limit.tokens * 5 // 4, used.tokens + tokens),
        )

    @property
    def spending_text(self) -> str:
        """The settled part of the limit, as text."""
        limit, used = self.ledger.limit, self.ledger.settled
        parts = [f"${used.cost:.4f} of its ${limit.cost:.4f}"] if limit.cost is not None else []
        if limit.tokens is not None:
            parts.append(f"{used.tokens:,} of its {limit.tokens:,} tokens")
        return " and ".join(parts)
