"""Why a conversation does not go on, kept beside its log for those who read nothing else."""

from pydantic import ValidationError

from events.base import Timestamp, Tolerant
from storage.keys import TROUBLE, conversation_prefix
from storage.reader import LogReader


class Kept(Tolerant):
    """`sentence` holds as long as the log has `end` slots: who writes another one goes on."""

    sentence: str | None
    end: int
    at: Timestamp


async def keep_trouble(log: LogReader, sentence: str | None, at: str) -> None:
    """Keep it, or with None that it is over. Raises StoreError."""
    kept = Kept(sentence=sentence, end=await log.end(), at=at)
    await log.store.replace(_key(log), kept.model_dump_json().encode())


async def kept_trouble(log: LogReader, end: int) -> str | None:
    """The sentence that was kept and holds for a log with `end` slots; not another version's.

    Raises StoreError.
    """
    body = await log.store.read(_key(log))
    try:
        kept = Kept.model_validate_json(body) if body is not None else None
    except ValidationError:
        return None
    return kept.sentence if kept and kept.end == end else None


def _key(log: LogReader) -> str:
    return conversation_prefix(log.user_id, log.conversation_id) + TROUBLE
