"""The rates of requests, of each user and each class of routes, in one process."""

from collections.abc import Callable, Mapping
from math import ceil
from time import monotonic

from perdure.gateway.errors import Refused
from perdure.gateway.limits.token_bucket import TokenBucket
from perdure.settings.settings import RouteClass
from perdure.storage.cache import Cache

MAX_BUCKETS = 100_000

BURST_SECONDS = 10.0
"""A user who has asked nothing for a while may ask at once what he may in so many seconds."""

MIN_BURST = 5.0

PER_MINUTE: Mapping[RouteClass, float] = {
    "read": 3000,
    "write": 600,
    "costly": 60,
    "failure": 60,
    "report": 30,
}
"""The requests a minute, unless `gateway_rates` says another number.

`costly` are exports, questions, forks and starts of batches. `failure` are wrong credentials from
one address, `report` what browsers of one address report of the page.
"""


class Rates:
    """The token buckets of users, and of addresses without a user."""

    def __init__(
        self, per_minute: Mapping[RouteClass, float], clock: Callable[[], float] = monotonic
    ) -> None:
        self._per_minute = {**PER_MINUTE, **per_minute}
        self._clock = clock
        self._buckets: Cache[tuple[RouteClass, str], TokenBucket] = Cache(MAX_BUCKETS)

    def take(self, route_class: RouteClass, who: str) -> None:
        """Count a request. Raises Refused if there are too many."""
        _refuse_if(self._bucket(route_class, who).take(self._clock()))

    def require(self, route_class: RouteClass, who: str) -> None:
        """Raise Refused if there are too many, without counting another."""
        _refuse_if(self._bucket(route_class, who).wait(self._clock()))

    def count(self, route_class: RouteClass, who: str) -> None:
        """Count a request that is answered in any case."""
        self._bucket(route_class, who).take(self._clock())

    def _bucket(self, route_class: RouteClass, who: str) -> TokenBucket:
        bucket = self._buckets.get((route_class, who))
        if bucket is None:
            rate = self._per_minute[route_class] / 60
            burst = max(MIN_BURST, rate * BURST_SECONDS)
            bucket = TokenBucket.filled(rate, burst, self._clock())
            self._buckets.put((route_class, who), bucket)
        return bucket


def _refuse_if(seconds: float) -> None:
    """Raise Refused if one has to wait for so many seconds."""
    if seconds > 0:
        wait = max(1, ceil(seconds))
        detail = f"These are too many requests: ask again in {wait} s."
        raise Refused(429, "too_many_requests", detail, headers={"Retry-After": str(wait)})
