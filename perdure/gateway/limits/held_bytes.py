"""The bytes of requests and answers that a process holds until they are whole, or taken."""

from collections import Counter

from perdure.gateway.errors import Refused

RETRY_AFTER = 10

MAX_HELD_BYTES = 64 * 1024 * 1024


class HeldBytes:
    """The bytes that are held for each user, or for an address without one: at most `most`."""

    def __init__(self, most: int = MAX_HELD_BYTES) -> None:
        self._most = most
        self._sizes: Counter[str] = Counter()

    def hold(self, who: str, count: int) -> None:
        """Count bytes; the only thing that is held may have any size. Raises Refused."""
        if self._sizes[who] and self._sizes[who] + count > self._most:
            raise Refused(
                429,
                "too_much_under_way",
                f"Over {self._most:,} bytes of your requests and answers are under way.",
                "Take the answers that you have asked for, then ask again.",
                {"Retry-After": str(RETRY_AFTER)},
            )
        self._sizes[who] += count

    def release(self, who: str, count: int) -> None:
        """Count bytes no more."""
        self._sizes[who] -= count
        if not self._sizes[who]:
            del self._sizes[who]
