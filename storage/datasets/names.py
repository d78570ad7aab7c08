"""That no two samples have the same id."""

import hashlib
from collections import Counter

from evaluation.sample import Misfit, Sample


class Names:
    """The ids so far, as hashes: ids may be long, and there may be many."""

    def __init__(self) -> None:
        self._lines: dict[int, int] = {}
        self._copies: Counter[str] = Counter()

    def given(self, sample: Sample, line: int, *, named: bool) -> Sample:
        """The sample, unless its id was taken; one that was named by what it holds is numbered.

        Raises Misfit with both lines.
        """
        while (first := self._lines.setdefault(_hash(sample.id), line)) != line:
            if named:
                raise Misfit(f"the id {sample.id!r} is that of line {first} too")
            self._copies[sample.id] += 1
            copy = f"{sample.id}-{self._copies[sample.id] + 1}"
            sample = sample.model_copy(update={"id": copy})
        return sample


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=16).digest())
