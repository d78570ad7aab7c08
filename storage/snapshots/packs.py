"""Packs: pieces of files gathered into a few objects, each named by the SHA-256 of its bytes."""

import hashlib
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from perdure.storage.snapshots.tree import Location, Locations

MAX_PIECE_BYTES = 4 << 20
"""Bytes of a file that are stored as one piece: a change in a large file costs as many."""

MAX_PACK_BYTES = 2 * MAX_PIECE_BYTES
"""Bytes of an unpacked pack: each but the last is at least half as large."""

THIN_PACK_BYTES = MAX_PACK_BYTES // 4  # a pack with fewer in use is expensive to restore
MAX_THIN_PACKS = 16
COMPRESSION_SAMPLE_BYTES = 64 << 10
MAX_COMPRESSION_RATIO = 0.95
"""Bytes that do not compress below this are stored as they are: pictures, archives."""


@dataclass(frozen=True)
class Pack:
    key: str
    body: bytes


class Packer:
    """Gathers pieces that are not stored yet; the caller takes packs away as they fill."""

    def __init__(self, prefix: str, stored: Locations) -> None:
        self.locations = dict(stored)
        self.prefix = prefix
        self._raw = bytearray()
        self._pending: dict[str, tuple[int, int]] = {}
        self._full: list[Pack] = []

    def add(self, piece: bytes) -> str:
        """Add a piece of at most MAX_PIECE_BYTES; return its name."""
        sha = hashlib.sha256(piece).hexdigest()
        if sha in self.locations or sha in self._pending:
            return sha
        if len(self._raw) + len(piece) > MAX_PACK_BYTES:
            self.close()
        self._pending[sha] = (len(self._raw), len(piece))
        self._raw += piece
        return sha

    def close(self) -> None:
        """Make a pack of the pieces that wait for others."""
        if not self._raw:
            return
        sample = bytes(self._raw[:COMPRESSION_SAMPLE_BYTES])
        worth = len(zlib.compress(sample, 1)) < MAX_COMPRESSION_RATIO * len(sample)
        body = zlib.compress(self._raw, 1 if worth else 0)
        key = f"{self.prefix}workspace/packs/{hashlib.sha256(body).hexdigest()}"
        self.locations |= {sha: Location(key, *span) for sha, span in self._pending.items()}
        self._full.append(Pack(key, body))
        self._raw, self._pending = bytearray(), {}

    def take_packs(self) -> list[Pack]:
        packs, self._full = self._full, []
        return packs

    def repack(self, body: bytes, shas: Iterable[str]) -> None:
        """Pack these pieces anew, given the bytes of the pack they are in."""
        raw = inflate(body, MAX_PACK_BYTES)
        for sha in shas:
            self.add(self.locations.pop(sha).cut(raw))


def find_thin_packs(locations: Locations) -> list[str]:
    """List the packs that these pieces, those in use, fill little: none unless they are many."""
    used: Counter[str] = Counter()
    for location in locations.values():
        used[location.pack] += location.length
    packs = [pack for pack, size in used.items() if size < THIN_PACK_BYTES]
    return packs if len(packs) > MAX_THIN_PACKS else []


def inflate(body: bytes, limit: int) -> bytes:
    """Decompress at most `limit` bytes. Raises ValueError if there are more, or none."""
    stream = zlib.decompressobj()
    try:
        raw = stream.decompress(body, limit)
    except zlib.error as error:
        raise ValueError(f"it cannot be unpacked: {error}") from error
    if not stream.eof:
        raise ValueError(f"it ends too soon, or has more than {limit:,} bytes")
    return raw
