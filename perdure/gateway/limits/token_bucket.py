"""A token bucket: so many requests a second on average, and some at once."""

from dataclasses import dataclass


@dataclass
class TokenBucket:
    """A bucket that fills with `rate` tokens a second, up to `burst` tokens.

    Times are seconds of one clock.
    """

    rate: float
    burst: float
    tokens: float
    updated: float

    @classmethod
    def filled(cls, rate: float, burst: float, now: float) -> "TokenBucket":
        return cls(rate, burst, burst, now)

    def take(self, now: float) -> float:
        """Take a token, and return 0; else return the seconds until there is one."""
        self._fill(now)
        if self.tokens >= 1:
            self.tokens -= 1
            return 0.0
        return (1 - self.tokens) / self.rate

    def wait(self, now: float) -> float:
        """Return the seconds until there is a token; 0 if there is one."""
        self._fill(now)
        return 0.0 if self.tokens >= 1 else (1 - self.tokens) / self.rate

    def _fill(self, now: float) -> None:
        self.tokens = min(self.burst, self.tokens + max(0.0, now - self.updated) * self.rate)
        self.updated = max(now, self.updated)
