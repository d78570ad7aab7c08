"""The user of a conversation: what they have before it begins, and what it leaves them.

Each conversation has a user of its own, so that none sees what another one shares or remembers.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields

from perdure.api.memories import FoundMemory, Memory, PutMemory
from perdure.memory.service import MemoryService
from perdure.secrets.vault import Vault
from perdure.storage.log.reader import LogReader
from perdure.storage.noted_values import load_session_state
from perdure.storage.shared_values import ABSENT, shared_key, write_shared_value
from perdure.storage.store import Store
from reliability.crashes.scenario import BUDGET, BUDGET_KEY, RULE, SEARCH, SECRETS
from tests.secrets.keys import key_ring

KEY = "crashes"
"""The name of the key that encrypts secrets."""

MAX_MEMORIES = 100

VARYING_FIELDS = {"id", "created"}
"""Fields of a memory that no two conversations have in common."""


@dataclass(frozen=True)
class UserTraces:
    """Traces of a conversation at its user: values, writes of the shared one, and memories.

    `found` are the memories that a search of another process finds. Ids and times are left out, so
    that two conversations in which the same was done leave the same.
    """

    values: list[str]
    budgets: list[str]
    memories: list[str]
    found: list[str]


async def prepare_user(store: Store, user_id: str) -> None:
    """Hand in the secrets of a user, a memory, and a value that their conversations share."""
    vault = Vault(store, user_id, key_ring(KEY))
    for name, value in SECRETS.items():
        await vault.put(name, value, f"what {name} is for")
    await MemoryService(store).of_user(user_id).put(PutMemory(text=RULE, key="rule"))
    await write_shared_value(store, user_id, BUDGET_KEY, BUDGET, ABSENT, "before")


async def read_user(store: Store, user_id: str, conversation_id: str) -> UserTraces:
    """Read what is there of a user once their conversation is over."""
    log = LogReader(store, user_id, conversation_id)
    memory = MemoryService(store).of_user(user_id)
    memories = await memory.list_memories(MAX_MEMORIES)
    found = await memory.search(SEARCH, MAX_MEMORIES)
    body = await store.read(shared_key(user_id, BUDGET_KEY))
    return UserTraces(
        values=[f"{key}: {value}" for key, value in (await load_session_state(log)).items()],
        budgets=[str(write["value"]) for write in json.loads(body or b"{}").get("writes", ())],
        memories=sorted(_normalize(item, conversation_id) for item in memories),
        found=sorted(_normalize(item, conversation_id) for item in found),
    )


def _normalize(memory: Memory | FoundMemory, conversation_id: str) -> str:
    plain = memory.memory if isinstance(memory, FoundMemory) else memory
    return plain.model_dump_json(exclude=VARYING_FIELDS).replace(conversation_id, "conversation")


def find_user_differences(due: UserTraces | None, seen: UserTraces | None) -> Iterator[str]:
    """Find how what a conversation has left its user differs from what is due."""
    for field in fields(UserTraces):
        expected, actual = (Counter(getattr(user, field.name, ())) for user in (due, seen))
        if expected != actual:
            more, missing = actual - expected, expected - actual
            yield f"of {field.name} the user has {dict(more)}, and not {dict(missing)}"
