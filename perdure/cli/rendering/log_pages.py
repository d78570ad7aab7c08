"""Reading of logs page by page; unreadable slots come as errors between the entries."""

import json
import re
from collections.abc import AsyncIterator, Sequence

from perdure.cli.output import shorten_line
from perdure.errors import NotFound
from perdure.events.content import join_text
from perdure.events.entry import Entry
from perdure.events.messages import MessageEvent
from perdure.events.observations import FileEditorObservation
from perdure.events.tools import ObservationEvent
from perdure.storage.errors import BadSlot, Damaged
from perdure.storage.log.readable import EntryOrError, ReadableLog
from perdure.storage.log.segments import SEGMENT_SIZE

FIRST_PAGE = 32
"""Slots that are read before a segment is looked for: often nobody wants more."""

TITLE_SEARCH_EVENTS = 8
"""The first message is looked for in so many events."""

BLOB_KEY = re.compile(r"blobs/[0-9a-f]{64}")

MAX_TITLE_CHARS = 60
"""The rest of the first message is cut off."""


async def require_conversation(log: ReadableLog) -> None:
    """Raises NotFound where nothing is recorded of the conversation."""
    if not await log.exists():
        raise NotFound(
            f"There is no conversation {log.conversation_id}.",
            "`perdure ls` lists them; one that was started a moment ago has no events before a "
            "worker takes it up.",
        )


async def read_slots(log: ReadableLog, after: int) -> AsyncIterator[EntryOrError]:
    """Yield every slot after `after` that exists now."""
    size = FIRST_PAGE
    while page := await _read_page(log, after + 1, size):
        for slot in page:
            yield slot
        after, size = page[-1].seq, SEGMENT_SIZE


async def _read_page(log: ReadableLog, first: int, size: int) -> Sequence[EntryOrError]:
    """Read slots, from a segment where there is one; errors stand in place of unreadable ones."""
    try:
        return await log.read(first, size)
    except BadSlot:
        return await log.read_slots(first, size)


async def load_contents(log: ReadableLog, entry: Entry) -> Entry:
    """Put the texts of an edited file, which the log keeps as blobs, in place of their keys."""
    match entry.event:
        case ObservationEvent(observation=FileEditorObservation() as edit) as event:
            contents = {name: getattr(edit, name) for name in ("old_content", "new_content")}
            texts = {name: await _load_text(log, key) for name, key in contents.items()}
            loaded = {name: text for name, text in texts.items() if text is not None}
            changed = event.model_copy(update={"observation": edit.model_copy(update=loaded)})
            body = _replace_contents(entry.body, loaded) if loaded else entry.body
            return entry.model_copy(update={"event": changed, "body": body})
    return entry


async def _load_text(log: ReadableLog, key: str | None) -> str | None:
    """Load the text of a blob; None where the key is none, or where the content is no text."""
    if key is None or BLOB_KEY.fullmatch(key) is None:
        return None
    content = await log.read_blob(key)
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        return None


def _replace_contents(body: bytes, contents: dict[str, str]) -> bytes:
    fields = json.loads(body)
    fields["observation"] |= contents
    return json.dumps(fields, ensure_ascii=False).encode()


async def follow_slots(log: ReadableLog, after: int) -> AsyncIterator[EntryOrError]:
    """Yield every slot after `after`, and each new one as it is written; without end."""
    async for slot in read_slots(log, after):
        yield slot
        after = slot.seq
    while True:
        try:
            async for entry in log.tail(after):
                yield entry
                after = entry.seq
        except Damaged as error:
            yield error
            after = error.seq


async def title_from_first_message(log: ReadableLog) -> str | None:
    """Derive a title from how the first message begins."""
    for slot in await log.read_slots(0, TITLE_SEARCH_EVENTS):
        if isinstance(slot, Entry) and isinstance(slot.event, MessageEvent):
            return shorten_line(join_text(slot.event.llm_message.content), MAX_TITLE_CHARS)
    return None
