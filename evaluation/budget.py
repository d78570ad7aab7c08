"""Who may spend how much of what a batch has, and who waits for more."""

from agent.trial import Allowance, AllowanceAsked
from evaluation.ledger import Amount, Ledger, allowance, reserve, settle


class Budget:
    """A ledger, and those who asked for more of it than there was: `asking` is what they want."""

    def __init__(self, ledger: Ledger, asking: dict[str, Amount]) -> None:
        self.ledger = ledger
        self.asking = dict(asking)

    def begin(self, name: str, most: Amount | None) -> Allowance | None:
        """What one more may spend, whose own limits are `most`; None where too little is left."""
        if self.ledger.is_open:
            return Allowance()
        cost = most.cost if most else 0.0
        tokens = most.tokens if most else 0
        share = self.ledger.share(Allowance(cost=cost or None, tokens=tokens or None))
        ledger = None if self.ledger.is_breached else reserve(self.ledger, name, share)
        if ledger is None:
            return None
        self.ledger = ledger
        return allowance(ledger, share)

    def ask(self, asked: AllowanceAsked) -> None:
        wanted = asked.wanted
        self.asking[asked.holder] = Amount(cost=wanted.cost or 0.0, tokens=wanted.tokens or 0)

    def end(self, name: str, spent: Amount) -> None:
        self.asking.pop(name, None)
        self.ledger = settle(self.ledger, name, spent)

    def grants(self) -> dict[str, Allowance]:
        """What those are given who ask, as far as there is enough."""
        granted: dict[str, Allowance] = {}
        for name, wanted in list(self.asking.items()):
            ledger = reserve(self.ledger, name, wanted)
            if ledger is not None:
                self.ledger = ledger
                del self.asking[name]
                granted[name] = allowance(ledger, wanted)
        return granted

    def is_all_there_is(self, running: set[str]) -> bool:
        """Whether nobody who runs can give anything back any more."""
        return self.asking.keys() >= running

    def limit(self, allowed: Allowance) -> None:
        self.ledger = self.ledger.model_copy(update={"limit": allowed})

    def raised(self, cost: float | None, tokens: int | None) -> Allowance:
        """The limit with those parts of it changed that are named."""
        limit = self.ledger.limit
        return Allowance(
            cost=limit.cost if cost is None else cost,
            tokens=limit.tokens if tokens is None else tokens,
        )

    def larger(self) -> Allowance:
        """What a part of a batch needs in all, so that one more of those who wait can go on."""
        used, limit = self.ledger.committed, self.ledger.limit
        wanted = list(self.asking.values())
        cost = max((one.cost for one in wanted), default=0.0)
        tokens = max((one.tokens for one in wanted), default=0)
        return Allowance(
            cost=None if limit.cost is None else max(limit.cost * 1.25, used.cost + cost),
            tokens=None
            if limit.tokens is None
            else max(limit.tokens * 5 // 4, used.tokens + tokens),
        )

    @property
    def spent(self) -> str:
        """What is gone, in words."""
        limit, used = self.ledger.limit, self.ledger.settled
        told = [f"${used.cost:.4f} of its ${limit.cost:.4f}"] if limit.cost is not None else []
        if limit.tokens is not None:
            told.append(f"{used.tokens:,} of its {limit.tokens:,} tokens")
        return " and ".join(told)
