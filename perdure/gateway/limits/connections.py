"""The connections of each user that last: streams, sockets and feeds."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from perdure.gateway.errors import Refused

RETRY_AFTER = 10


class Connections:
    """The number of connections of each user in one process."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._counts: Counter[str] = Counter()

    @contextmanager
    def hold(self, user_id: str) -> Iterator[None]:
        """Count a connection while inside. Raises Refused if there are too many."""
        if self._counts[user_id] >= self._most:
            raise Refused(
                429,
                "too_many_connections",
                f"You have {self._most} connections: close one.",
                headers={"Retry-After": str(RETRY_AFTER)},
            )
        self._counts[user_id] += 1
        try:
            yield
        finally:
            self._counts[user_id] -= 1
            if not self._counts[user_id]:
                del self._counts[user_id]
