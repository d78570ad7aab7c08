"""Pieces of files gathered into a few objects, each named by the SHA-256 of its bytes."""

import hashlib
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from storage.snapshots.tree import Place, Places

PIECE = 4 << 20
"""Bytes of a file that are stored as one: a change in a large file costs as many."""

PACK = 2 * PIECE
"""Bytes of an unpacked pack: each but the last is at least half as large."""

THIN = PACK // 4
"""A pack of which fewer bytes are in use is dear to restore."""

MANY_THIN = 16

SAMPLE = 64 << 10
WORTH = 0.95
"""What does not get smaller than this is stored as it is: pictures, archives."""


@dataclass(frozen=True)
class Pack:
    key: str
    body: bytes


class Packer:
    """Packs what is not stored yet; whoever adds pieces takes the packs away as they fill."""

    def __init__(self, prefix: str, known: Places) -> None:
        self.places = dict(known)
        self._prefix = prefix
        self._raw = bytearray()
        self._begun: dict[str, tuple[int, int]] = {}
        self._full: list[Pack] = []

    def add(self, piece: bytes) -> str:
        """The name of a piece of at most PIECE bytes."""
        sha = hashlib.sha256(piece).hexdigest()
        if sha in self.places or sha in self._begun:
            return sha
        if len(self._raw) + len(piece) > PACK:
            self.close()
        self._begun[sha] = (len(self._raw), len(piece))
        self._raw += piece
        return sha

    def close(self) -> None:
        """Make a pack of what waits for others to join it."""
        if not self._raw:
            return
        body = deflated(self._raw)
        key = f"{self._prefix}workspace/packs/{hashlib.sha256(body).hexdigest()}"
        self.places |= {sha: Place(key, *span) for sha, span in self._begun.items()}
        self._full.append(Pack(key, body))
        self._raw = bytearray()
        self._begun = {}

    def taken(self) -> list[Pack]:
        full, self._full = self._full, []
        return full

    def repack(self, body: bytes, shas: Iterable[str]) -> None:
        """Pack these pieces anew, given the bytes of the pack they are in."""
        raw = inflated(body, PACK)
        for sha in shas:
            place = self.places.pop(sha)
            self.add(raw[place.offset : place.offset + place.length])


def thin(live: Places) -> list[str]:
    """Packs that are to be gathered into fewer: none, as long as there are not many of them.

    `live` has the pieces that are in use.
    """
    used: Counter[str] = Counter()
    for place in live.values():
        used[place.pack] += place.length
    found = [pack for pack, size in used.items() if size < THIN]
    return found if len(found) > MANY_THIN else []


def deflated(raw: bytes | bytearray) -> bytes:
    sample = bytes(raw[:SAMPLE])
    worth = len(zlib.compress(sample, 1)) < WORTH * len(sample)
    return zlib.compress(raw, 1 if worth else 0)


def inflated(body: bytes, limit: int) -> bytes:
    """Raises ValueError where these are not the packed bytes of at most `limit`."""
    stream = zlib.decompressobj()
    try:
        raw = stream.decompress(body, limit)
    except zlib.error as error:
        raise ValueError(f"it cannot be unpacked: {error}") from error
    if not stream.eof:
        raise ValueError(f"it ends too soon, or has more than {limit:,} bytes")
    return raw
