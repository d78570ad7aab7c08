"""Whether the samples of a batch agree with those that it has had before."""

import hashlib
from collections.abc import Iterable, Iterator

from client.errors import Conflict
from evaluation.sample import Sample
from storage.batches import BatchFolder, Kept
from storage.keys import batch_prefix

JUDGED = {"target", "metadata"}
"""What an agent is not told: it may be mended, where samples are then scored again."""

RESCORED = "rescored"
"""The option of a batch that names the sets whose targets have been mended since."""

PAGE = 1000


class Agreeing:
    """Samples to go through, also several times.

    Raises Conflict at one that is not what it was when the batch had it before.
    """

    def __init__(self, name: str, samples: Iterable[Sample], earlier: "Earlier") -> None:
        self._name = name
        self._samples = samples
        self._earlier = earlier

    def __iter__(self) -> Iterator[Sample]:
        for sample in self._samples:
            if (part := self._earlier.differs(sample)) is not None:
                raise Conflict(
                    f"The sample {sample.id!r} is not what it was in an earlier run of "
                    f"{self._name}: {part}.",
                    _hint(self._name, part),
                )
            yield sample


class Earlier:
    """Hashes of what a batch has had: about 200 bytes a sample.

    Where samples are scored again, their targets and metadata may have changed.
    """

    def __init__(self, *, rescore: bool = False) -> None:
        self._rescore = rescore
        self._asked: dict[int, int] = {}
        self._judged: dict[int, int] = {}

    def add(self, sample: Sample, *, judged: bool) -> None:
        """`judged`: its target and its metadata count too."""
        self._asked[hashed(sample.id)] = _asked(sample)
        if judged and not self._rescore:
            self._judged[hashed(sample.id)] = _judged(sample)

    def differs(self, sample: Sample) -> str | None:
        """What about it is not as it was; None where all is, or where it is new."""
        name = hashed(sample.id)
        asked, judged = self._asked.get(name), self._judged.get(name)
        if asked is not None and asked != _asked(sample):
            return "it asks for something else, or has other files"
        if judged is not None and judged != _judged(sample):
            return "its target or its metadata are others"
        return None


async def earlier(folder: BatchFolder, kept: Kept, *, rescore: bool = False) -> Earlier:
    """Every sample that the batch has ever had. Raises Altered."""
    found = Earlier(rescore=rescore)
    mended = kept.options.get(RESCORED)
    for name in await sets(folder):
        judged = not (isinstance(mended, list) and name in mended)
        chunks = kept.chunks if name == kept.samples else await _count(folder, name)
        for chunk in range(chunks):
            for sample in await folder.chunk(name, chunk):
                found.add(sample, judged=judged)
    return found


async def ids(folder: BatchFolder, kept: Kept) -> set[int]:
    """The samples that the batch has now, by the hashes of their ids. Raises Altered."""
    found: set[int] = set()
    for chunk in range(kept.chunks):
        found.update(hashed(sample.id) for sample in await folder.chunk(kept.samples, chunk))
    return found


def hashed(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


async def are_those(folder: BatchFolder, kept: Kept, samples: Iterable[Sample]) -> bool:
    """Whether the samples are those that the batch has now, in their order. Raises Altered."""
    others = iter(samples)
    for chunk in range(kept.chunks):
        for sample in await folder.chunk(kept.samples, chunk):
            if next(others, None) != sample:
                return False
    return next(others, None) is None


async def sets(folder: BatchFolder) -> list[str]:
    """The names of the sets of samples that the store has of a batch."""
    return await folder.store.folders(_prefix(folder))


async def _count(folder: BatchFolder, name: str) -> int:
    """How many objects of the set are there, from the first on: the last may not be written yet."""
    prefix, after, count = f"{_prefix(folder)}{name}/", "", 0
    while page := await folder.store.list(prefix, after=after, limit=PAGE):
        numbers = [int(key[len(prefix) :].removesuffix(".jsonl")) for key in page]
        whole = next((at for at, one in enumerate(numbers, count) if at != one), None)
        if whole is not None:
            return whole
        count, after = count + len(page), page[-1]
    return count


def _prefix(folder: BatchFolder) -> str:
    return f"{batch_prefix(folder.user_id, folder.name)}samples/"


def _hint(name: str, part: str) -> str:
    if part.startswith("its target"):
        return (
            f"`perdure batch rescore {name} FILE` scores what there is by the new ones; or give "
            "the batch another name."
        )
    return "Give the batch another name."


def _asked(sample: Sample) -> int:
    return hashed(sample.model_dump_json(exclude=JUDGED))


def _judged(sample: Sample) -> int:
    return hashed(sample.model_dump_json(include=JUDGED))
