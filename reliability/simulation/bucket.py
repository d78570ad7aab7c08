"""A simulated bucket: its objects, and which of the requests of them meet a fault."""

import hashlib
import time
import uuid
from collections import Counter
from collections.abc import Iterator

from reliability.simulation.scheduler import PROCESS, SimulatedLoop


class Bucket:
    """The objects, strongly consistent as S3 is; `faults` counts what went wrong, by its name.

    `trouble` is the part of the requests that fail; after `calm` seconds none does. `spoils` says
    that the bucket does not honour `If-None-Match`.
    """

    def __init__(
        self, loop: SimulatedLoop, trouble: float, calm: float, *, spoils: bool = False
    ) -> None:
        self.loop = loop
        self.trouble = trouble
        self.calm = calm
        self.spoils = spoils
        self.objects: dict[str, bytes] = {}
        self.history: dict[str, list[bytes | None]] = {}
        """The bodies that each object has had, in order; None where it was deleted."""
        self.overwritten: list[str] = []
        self.late: set[str] = set()
        """The keys of what was done when nobody waited for it any more."""
        self._names: dict[str, str] = {}
        self._epoch = time.time_ns() // 1_000_000
        self.faults: Counter[str] = Counter()
        self.requests = 0

    def put(self, key: str, body: bytes, once: bool, tag: str | None = None) -> bool:
        """Write an object: `once` unless it is there, with a `tag` if it is still that version."""
        if once and key in self.objects and not self.spoils:
            return False
        if tag is not None and tag != make_tag(self.objects.get(key, b"")):
            return False
        if key in self.objects and self.objects[key] != body:
            self.overwritten.append(key)
        self.objects[key] = body
        self.history.setdefault(key, []).append(body)
        return True

    def delete(self, key: str) -> None:
        if self.objects.pop(key, None) is not None:
            self.history[key].append(None)

    def rename(self, name: str) -> str:
        """Return the name that stands for a random one: a UUID of the same form, in their order."""
        if name not in self._names:
            value = self._epoch + len(self._names) << 80 | 0x7 << 76 | 0x2 << 62
            ordered = uuid.UUID(int=value)
            mine = str(ordered) if "-" in name else ordered.hex
            self._names |= {name: mine, mine: mine}
        return self._names[name]

    def under(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Yield what lies under a prefix now, by the rest of its key, in order."""
        for key in sorted(self.objects):
            if key.startswith(prefix):
                yield key.removeprefix(prefix), self.objects[key]

    def fault(self, kinds: tuple[str, ...]) -> str | None:
        """Choose the fault that this request meets."""
        self.requests += 1
        if PROCESS.get() is None or self.loop.now > self.calm:
            return None
        if not self.loop.chance(self.trouble):
            return None
        fault = self.loop.random.choice(kinds)
        self.faults[fault] += 1
        return fault


def make_tag(body: bytes) -> str:
    """Return the tag of a version, which S3 makes of its bytes."""
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'
