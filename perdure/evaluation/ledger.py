"""The spending of a batch: amounts are reserved before they are spent, and settled afterwards.

Settled and reserved amounts together never exceed the limit. The batch itself exceeds it at most by
the unforeseen cost of single answers, which is known only once they have come.
"""

from pydantic import Field

from perdure.agent.loop.attempt import Allowance
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

    def __sub__(self, other: "Amount") -> "Amount":
        return Amount(cost=self.cost - other.cost, tokens=self.tokens - other.tokens)


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
        """There is no limit."""
        return self.limit.cost is None and self.limit.tokens is None

    @property
    def committed(self) -> Amount:
        return sum(self.reserved.values(), self.settled)

    @property
    def remaining(self) -> Allowance:
        """The part of the limit that is neither settled nor reserved, never below 0."""
        used = self.committed
        cost, tokens = self.limit.cost, self.limit.tokens
        return Allowance(
            cost=None if cost is None else max(0.0, cost - used.cost),
            tokens=None if tokens is None else max(0, tokens - used.tokens),
        )

    @property
    def is_exhausted(self) -> bool:
        """The limit leaves no amount to reserve."""
        left = self.remaining
        return (left.cost is not None and left.cost <= COST_TOLERANCE) or left.tokens == 0

    def share_for(self, own_limits: Allowance) -> Amount:
        """Compute the amount to reserve for one more sample with its own limits."""
        known = self.count >= MIN_SETTLED
        cost = (
            RESERVE_FACTOR * self.settled.cost / self.count
            if known
            else INITIAL_SHARE * (self.limit.cost or 0)
        )
        tokens = (
            RESERVE_FACTOR * self.settled.tokens / self.count
            if known
            else INITIAL_SHARE * (self.limit.tokens or 0)
        )
        return Amount(
            cost=cost if own_limits.cost is None else min(cost, own_limits.cost),
            tokens=int(tokens if own_limits.tokens is None else min(tokens, own_limits.tokens)),
        )


def reserve(ledger: Ledger, holder: str, amount: Amount) -> Ledger | None:
    """Set the holder's reservation to `amount` in all; None if not enough is left.

    A smaller amount than before gives the difference back. It includes what the holder has already
    spent, which `settle` books at its end.
    """
    others = {name: held for name, held in ledger.reserved.items() if name != holder}
    before = ledger.model_copy(update={"reserved": others})
    if not ledger.is_unlimited and not _fits(before, amount):
        return None
    return before.model_copy(update={"reserved": {**others, holder: amount}})


def settle(ledger: Ledger, holder: str, spent: Amount) -> Ledger:
    """Release the holder's reservation and add its spending, which may exceed the reservation."""
    others = {name: held for name, held in ledger.reserved.items() if name != holder}
    return ledger.model_copy(
        update={
            "reserved": others,
            "settled": ledger.settled + spent,
            "count": ledger.count + 1,
        }
    )


def allowance_of(ledger: Ledger, amount: Amount) -> Allowance:
    """Convert an amount to an allowance, unlimited where the batch has no limit."""
    return Allowance(
        cost=None if ledger.limit.cost is None else amount.cost,
        tokens=None if ledger.limit.tokens is None else amount.tokens,
    )


def _fits(ledger: Ledger, amount: Amount) -> bool:
    left = ledger.remaining
    if left.cost is not None and amount.cost > left.cost + COST_TOLERANCE:
        return False
    return left.tokens is None or amount.tokens <= left.tokens
