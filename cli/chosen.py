"""What is to be exported: conversations, and those of whole batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from cli.stack import batch_of, log_of
from client.errors import Invalid, NotFound
from evaluation.tally import Tally
from storage.batches import BatchFolder, Kept
from storage.counted import counted


class Tried(NamedTuple):
    """One attempt, by its place in the batch: that is the order they are exported in."""

    sample: str
    epoch: int
    number: int
    conversation_id: str
    folder: BatchFolder


@dataclass(frozen=True)
class Batch:
    """A batch as it is now, with the attempts that are wanted of it."""

    folder: BatchFolder
    kept: Kept
    tally: Tally
    attempts: tuple[Tried, ...]


async def batch_in(folder: BatchFolder, every: bool = False) -> Batch:
    """With the attempts that count, or `every` one. Raises NotFound and Altered."""
    kept = await folder.kept()
    if kept is None:
        raise NotFound(f"There is no batch {folder.name!r}.")
    tally, found = Tally(kept.spec.reducers), []
    async for result in counted(folder, kept):
        tally.add(result)
        found += [
            Tried(result.id, one.epoch, one.number, one.conversation_id, folder)
            for one in (result.attempts if every else result.final)
        ]
    return Batch(folder, kept, tally, tuple(sorted(found)))


async def chosen(names: Sequence[str]) -> list[str | Batch]:
    """What each name stands for: a conversation's id for itself.

    Raises NotFound, and Invalid for what can be the name of neither.
    """
    return [await _chosen(name) for name in dict.fromkeys(names)]


async def _chosen(name: str) -> str | Batch:
    if _looks_like_an_id(name):
        await log_of(name)
        return name
    try:
        return await batch_in(await batch_of(name))
    except NotFound as error:
        raise NotFound(f"There is no conversation and no batch {name!r}.", error.hint) from error
    except Invalid as error:
        raise Invalid(
            f"{name!r} is neither a conversation id, which is a UUID, nor a batch's name."
        ) from error


def _looks_like_an_id(name: str) -> bool:
    """However it is spelled."""
    try:
        UUID(name)
    except ValueError:
        return False
    return True
