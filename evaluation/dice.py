"""Numbers that look random and are a function of a seed: the same on every machine, for ever.

They are the output of SHAKE-256 (FIPS 202, 6.2) over the seed. What a library's generator draws
may change between versions, and a batch that goes on after a deploy must find its old order.
"""

import hashlib
import sys
from array import array
from collections.abc import Sequence

_LOWEST_BIT = bytes(one & 1 for one in range(256))


def numbers(seed: str, count: int) -> Sequence[int]:
    """So many, of 64 bits each."""
    drawn = array("Q", _drawn(seed, 8 * count))
    if sys.byteorder == "big":
        drawn.byteswap()
    return drawn


def coins(seed: str, count: int) -> bytes:
    """So many, each 0 or 1."""
    return _drawn(seed, count).translate(_LOWEST_BIT)


def permutation(seed: str, length: int) -> list[int]:
    """The numbers below `length` in an order of the seed's (Fisher-Yates; Knuth, TAOCP 3.4.2 P)."""
    order = list(range(length))
    for last, number in enumerate(numbers(seed, length)):
        # Scaled rather than taken modulo: one number in 2^64 / length is off, which nobody can see.
        other = number * (last + 1) >> 64
        order[last], order[other] = order[other], order[last]
    return order


def _drawn(seed: str, size: int) -> bytes:
    return hashlib.shake_256(seed.encode()).digest(size)
