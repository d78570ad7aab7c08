"""Ingesting a conversation: its summary and its turns become memories of its user."""

import hashlib
from functools import partial

from perdure.agent.spec import Agent
from perdure.api.memories import Ingested, Memory, PutMemory
from perdure.events.entry import Entry
from perdure.memory.ingestion import ConversationMemories
from perdure.memory.records import Author
from perdure.memory.user_memory import UserMemory
from perdure.storage.log.readable import ReadableLog
from perdure.storage.parallel import map_parallel

PARALLEL_PUTS = 16


async def ingest_conversation(memory: UserMemory, log: ReadableLog, agent: Agent) -> Ingested:
    """Put the memories of a conversation, those that were removed excepted.

    A second time puts only what has changed, so that it may be begun again wherever it was stopped.
    One that goes on late takes back nothing that a later one, of a longer log, has put since.
    The index is not touched: it takes them in before the next search.
    """
    collected, last_seq = ConversationMemories(log.conversation_id), 0
    async for page in log.pages():
        for slot in page:
            if isinstance(slot, Entry):
                collected.add(slot)
                last_seq = slot.seq
    put = partial(_put, memory, Author("conversation", log.conversation_id), last_seq)
    results = [
        result
        async for result in map_parallel(
            put, collected.build(agent), first=PARALLEL_PUTS, most=PARALLEL_PUTS
        )
    ]
    return Ingested(
        memories=sum(found is not None for found, _ in results),
        new=sum(is_new for _, is_new in results),
    )


async def _put(
    memory: UserMemory, author: Author, last_seq: int, draft: PutMemory
) -> tuple[Memory | None, bool]:
    content = hashlib.sha256(draft.model_dump_json().encode()).hexdigest()[:16]
    write_id = f"ingestion {last_seq} {content}"
    return await memory.records.put(draft, author, revive=False, write_id=write_id)
