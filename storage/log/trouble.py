"""The reason why a conversation does not go on, saved beside its log."""

from pydantic import ValidationError

from perdure.events.base import Timestamp, Tolerant
from perdure.storage.keys import TROUBLE
from perdure.storage.log.readable import ReadableLog
from perdure.storage.log.reader import LogReader


class TroubleRecord(Tolerant):
    """A sentence that is valid while the log has `end` slots: any later event voids it."""

    sentence: str | None
    end: int
    at: Timestamp


async def save_trouble(log: LogReader, sentence: str | None, at: str) -> None:
    """Save the sentence, or None once the trouble is over. Raises StoreError."""
    record = TroubleRecord(sentence=sentence, end=await log.end(), at=at)
    await log.store.replace(log.prefix + TROUBLE, record.model_dump_json().encode())


async def load_trouble(log: ReadableLog, end: int) -> str | None:
    """Load the sentence valid for `end` slots; None from another version. Raises StoreError."""
    body = await log.load_trouble()
    try:
        record = TroubleRecord.model_validate_json(body or b"")
    except ValidationError:
        return None
    return record.sentence if record.end == end else None
