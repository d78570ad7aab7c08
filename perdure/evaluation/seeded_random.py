"""Pseudorandom numbers as a pure function of a seed, the same on every machine and version.

They are the output of SHAKE-256 (FIPS 202, 6.2) over the seed. A library's generator may change
between versions, and a batch that goes on after a deploy must find its old order.
"""

import hashlib
import struct
from collections.abc import Sequence

_LOWEST_BIT = bytes(byte & 1 for byte in range(256))


def integers(seed: str, count: int) -> Sequence[int]:
    """Return `count` random unsigned 64-bit integers."""
    return struct.unpack(f"<{count}Q", _shake_256(seed, 8 * count))


def bits(seed: str, count: int) -> bytes:
    """Return `count` random bits, one per byte."""
    return _shake_256(seed, count).translate(_LOWEST_BIT)


def permutation(seed: str, length: int) -> list[int]:
    """Shuffle the numbers below `length` (Fisher-Yates; Knuth, TAOCP 3.4.2 P)."""
    order = list(range(length))
    for last, number in enumerate(integers(seed, length)):
        # Scaled rather than taken modulo; the bias is at most length / 2^64.
        other = number * (last + 1) >> 64
        order[last], order[other] = order[other], order[last]
    return order


def _shake_256(seed: str, size: int) -> bytes:
    return hashlib.shake_256(seed.encode()).digest(size)
