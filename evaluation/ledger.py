"""What a batch may spend: reserved before it is spent, settled once it has been.

What is settled and what is reserved together never pass the limit. So the batch passes it at most
by what single answers cost more than was foreseen: nobody knows what an answer costs before it is
there.
"""

from pydantic import Field

from agent.trial import Allowance
from events.base import Frozen
from events.usage import Usage

KNOWN = 5
"""Samples that must have been settled before others are judged by what they took."""

FIRST = 0.02
"""The part of the limit that is reserved for a sample while nothing is known of any."""

MARGIN = 1.5
"""How much more than the mean of those before it is reserved for a sample."""

ROUNDING = 1e-9


class Amount(Frozen):
    """US dollars, and tokens both ways."""

    cost: float = 0.0
    tokens: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(cost=self.cost + other.cost, tokens=self.tokens + other.tokens)

    def __sub__(self, other: "Amount") -> "Amount":
        return Amount(cost=self.cost - other.cost, tokens=self.tokens - other.tokens)


NOTHING = Amount()


def amount_of(usage: Usage) -> Amount:
    return Amount(cost=usage.cost, tokens=usage.prompt_tokens + usage.completion_tokens)


class Ledger(Frozen):
    """`limit` is what may be spent in all, `reserved` who may spend how much of it.

    `settled` is what was spent by those that have ended, who are `count`.
    """

    limit: Allowance = Allowance()
    settled: Amount = NOTHING
    count: int = 0
    reserved: dict[str, Amount] = Field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Whether there is no limit at all."""
        return self.limit.cost is None and self.limit.tokens is None

    @property
    def committed(self) -> Amount:
        total = self.settled
        for one in self.reserved.values():
            total += one
        return total

    @property
    def left(self) -> Allowance:
        """What nobody has reserved yet, never below 0."""
        used = self.committed
        cost, tokens = self.limit.cost, self.limit.tokens
        return Allowance(
            cost=None if cost is None else max(0.0, cost - used.cost),
            tokens=None if tokens is None else max(0, tokens - used.tokens),
        )

    @property
    def is_breached(self) -> bool:
        """Whether nothing is left that could be reserved."""
        left = self.left
        return (left.cost is not None and left.cost <= ROUNDING) or left.tokens == 0

    def share(self, most: Allowance) -> Amount:
        """What to reserve for one more sample, whose own limits are `most`."""
        known = self.count >= KNOWN
        cost = MARGIN * self.settled.cost / self.count if known else FIRST * (self.limit.cost or 0)
        tokens = (
            MARGIN * self.settled.tokens / self.count if known else FIRST * (self.limit.tokens or 0)
        )
        return Amount(
            cost=cost if most.cost is None else min(cost, most.cost),
            tokens=int(tokens if most.tokens is None else min(tokens, most.tokens)),
        )


def reserve(ledger: Ledger, holder: str, amount: Amount) -> Ledger | None:
    """The ledger in which `holder` has `amount` in all; None where there is not that much.

    Less than what it has is given back. What it has spent already, it has: see `settle`.
    """
    others = {name: one for name, one in ledger.reserved.items() if name != holder}
    before = ledger.model_copy(update={"reserved": others})
    if not ledger.is_open and not _fits(before, amount):
        return None
    return before.model_copy(update={"reserved": {**others, holder: amount}})


def settle(ledger: Ledger, holder: str, spent: Amount) -> Ledger:
    """The ledger in which `holder` has ended, and spent so much: also more than it had reserved."""
    others = {name: one for name, one in ledger.reserved.items() if name != holder}
    return ledger.model_copy(
        update={
            "reserved": others,
            "settled": ledger.settled + spent,
            "count": ledger.count + 1,
        }
    )


def allowance(ledger: Ledger, amount: Amount) -> Allowance:
    """What a holder of so much is told: of what has no limit it may take anything."""
    return Allowance(
        cost=None if ledger.limit.cost is None else amount.cost,
        tokens=None if ledger.limit.tokens is None else amount.tokens,
    )


def _fits(ledger: Ledger, amount: Amount) -> bool:
    left = ledger.left
    if left.cost is not None and amount.cost > left.cost + ROUNDING:
        return False
    return left.tokens is None or amount.tokens <= left.tokens
