"""An ingestion that is killed over and over: in the end each turn is a memory, once.

`python -m bench.memory.ingesting FOLDER ID` ingests a conversation of a store in files; the bench
kills it at random moments.
"""

import asyncio
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from bench.processes import ROOT, measured_environment
from perdure.agent.spec import Agent
from perdure.events.content import Message, TextContent
from perdure.events.control import ConversationStateUpdateEvent
from perdure.events.entry import Origin
from perdure.events.event import Event
from perdure.events.messages import MessageEvent
from perdure.memory.ingest import ingest_conversation
from perdure.memory.service import MemoryService
from perdure.storage.files import FileStore
from perdure.storage.ids import new_sortable_id
from perdure.storage.log.event_log import EventLog

USER = "anna"
AGENT = Agent(model="scripted:none")
TIMESTAMP = "2026-03-01T09:00:00.000000"
MAX_RUNS = 200


async def measure_ingestion(folder: Path, turns: int) -> dict[str, Any]:
    """Ingest a conversation of so many turns in processes that are killed until one ends."""
    store, dice = FileStore(folder), random.Random(0)
    conversation_id = await write_conversation(store, turns)
    runs = kills = 0
    while runs < MAX_RUNS:
        runs += 1
        command = [sys.executable, "-m", "bench.memory.ingesting", str(folder), conversation_id]
        process = subprocess.Popen(command, cwd=ROOT, env=measured_environment({}))
        try:
            await asyncio.to_thread(process.wait, dice.uniform(0.3, 0.5) * (1 + runs / 8))
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
    memory = MemoryService(store).of_user(USER)
    put = await memory.list_memories(turns * 2 + 10)
    keys = Counter(it.key for it in put)
    expected = {f"conversation:{conversation_id}:turn:{nth}" for nth in range(turns)}
    found = await memory.search(f"question{turns - 1}")
    await store.close()
    return {
        "turns": turns,
        "kills": kills,
        "memories": len(put),
        "missing": len(expected - keys.keys()),
        "twice": sum(number > 1 for number in keys.values()),
        "last turn is found": bool(found),
    }


async def write_conversation(store: FileStore, turns: int) -> str:
    """Write the log of a conversation, and return its id."""
    conversation_id = new_sortable_id()
    value = AGENT.model_dump(mode="json", exclude_none=True)
    events: list[Event] = [
        ConversationStateUpdateEvent(timestamp=TIMESTAMP, key="spec", value=value)
    ]
    for nth in range(turns):
        events += [
            message("user", f"This is question{nth}."),
            message("agent", f"And answer{nth}."),
        ]
    log = EventLog(store, USER, conversation_id)
    await log.append(events, base=0, origin=Origin(run=new_sortable_id(), activity="1"))
    return conversation_id


def message(source: Any, text: str) -> MessageEvent:
    role: Any = "user" if source == "user" else "assistant"
    content = (TextContent(text=text),)
    return MessageEvent(
        timestamp=TIMESTAMP, source=source, llm_message=Message(role=role, content=content)
    )


async def ingest(folder: Path, conversation_id: str) -> None:
    store = FileStore(folder)
    log = EventLog(store, USER, conversation_id)
    await ingest_conversation(MemoryService(store).of_user(USER), log, AGENT)
    await store.close()


if __name__ == "__main__":
    asyncio.run(ingest(Path(sys.argv[1]), sys.argv[2]))
