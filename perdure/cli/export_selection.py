"""Selection of the conversations and batches to export."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from perdure.cli.environment import open_batch, open_log
from perdure.errors import Invalid, NotFound
from perdure.evaluation.summary import Tally
from perdure.storage.batches import BatchFolder, BatchRecord, read_current_results


class AttemptRef(NamedTuple):
    """An attempt at a sample; they are exported in the order of these fields."""

    sample: str
    epoch: int
    number: int
    conversation_id: str
    folder: BatchFolder


@dataclass(frozen=True)
class BatchSelection:
    """A batch as it is now, with the attempts to export."""

    folder: BatchFolder
    record: BatchRecord
    tally: Tally
    attempts: tuple[AttemptRef, ...]


async def select_batch(folder: BatchFolder, every: bool = False) -> BatchSelection:
    """Select the final attempts of a batch, or `every` one. Raises NotFound and Altered."""
    record = await folder.load()
    if record is None:
        raise NotFound(f"There is no batch {folder.name!r}.")
    tally, attempts = Tally(record.spec.reducers), []
    async for result in read_current_results(folder, record):
        tally.add(result)
        attempts += [
            AttemptRef(result.id, attempt.epoch, attempt.number, attempt.conversation_id, folder)
            for attempt in (result.attempts if every else result.final_attempts)
        ]
    return BatchSelection(folder, record, tally, tuple(sorted(attempts)))


async def select(names: Sequence[str]) -> list[str | BatchSelection]:
    """Resolve each name: an id stays as it is, and a batch's name becomes its selection.

    Raises NotFound, and Invalid for what can be the name of neither.
    """
    return [await _select_one(name) for name in dict.fromkeys(names)]


async def _select_one(name: str) -> str | BatchSelection:
    if _is_uuid(name):
        await open_log(name)
        return name
    try:
        return await select_batch(await open_batch(name))
    except NotFound as error:
        raise NotFound(f"There is no conversation and no batch {name!r}.", error.hint) from error
    except Invalid as error:
        raise Invalid(
            f"{name!r} is neither a conversation id, which is a UUID, nor a batch's name."
        ) from error


def _is_uuid(name: str) -> bool:
    try:
        UUID(name)
    except ValueError:
        return False
    return True
