"""The memories of a user as an agent may use them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from pydantic import ValidationError

from perdure.agent.memory import MemoryAccess
from perdure.api.memories import FoundMemory, MemoryFilter, PutMemory
from perdure.errors import Forbidden, Invalid
from perdure.events.validation_errors import describe_errors
from perdure.memory.records import Author, find_id
from perdure.memory.user_memory import UserMemory

MAX_SHOWN_CHARS = 4000
"""Characters of one memory that a model is shown."""


@dataclass(frozen=True)
class AgentMemory:
    """The memories that an agent of one conversation may search and put.

    What it puts belongs to `app`. `mask` takes secrets out of what it puts, as out of its log.
    """

    memory: UserMemory
    access: MemoryAccess
    conversation_id: str
    app: str = ""
    mask: Callable[[str], str] = str

    async def recall(self, query: str, limit: int) -> list[FoundMemory]:
        """Find memories. Raises Forbidden if the agent may search none, and as a search does."""
        if self.access.search == "none":
            raise Forbidden("This agent may not search memories.")
        app = self.app if self.access.search == "app" else None
        only = MemoryFilter(app=app, tags=self.access.tags)
        return await self.memory.search(query, limit, only)

    async def remember(self, text: str, key: str | None, tags: Sequence[str], call_id: str) -> str:
        """Put a memory, once for each `call_id`, and return its id.

        Raises Forbidden if the agent may put none, and Invalid.
        """
        if not self.access.write:
            raise Forbidden("This agent may not put memories.")
        try:
            draft = PutMemory(
                text=self.mask(text),
                key=None if key is None else self.mask(key),
                app=self.app,
                tags=tuple(dict.fromkeys((*self.access.tags, *map(self.mask, tags)))),
            )
        except ValidationError as error:
            raise Invalid(f"The memory is not right: {describe_errors(error)}.") from error
        author = Author("agent", self.conversation_id)
        memory_id = find_id(draft) if draft.key else call_id
        await self.memory.records.put(draft, author, memory_id, write_id=call_id)
        return memory_id


def render_memories(found: Sequence[FoundMemory]) -> str:
    """Render memories for a model, as material and not as instructions."""
    return "\n".join(map(_render, found))


def _render(found: FoundMemory) -> str:
    memory = found.memory
    text = memory.text
    if len(text) > MAX_SHOWN_CHARS:
        text = f"{text[:MAX_SHOWN_CHARS]}\n[Cut off here]"
    key = f' key="{escape(memory.key)}"' if memory.key and memory.source != "conversation" else ""
    origin = "you" if memory.source == "agent" else memory.source
    return (
        f'<memory id="{memory.id}"{key} date="{memory.created[:10]}" from="{origin}">\n'
        f"{text}\n</memory>"
    )
