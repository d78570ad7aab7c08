"""Memories: facts and texts that outlive a conversation, and the requests about them."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from perdure.api.json_object import JsonObject
from perdure.events.base import Frozen, Timestamp, Tolerant

MAX_TEXT_BYTES = 64 * 1024
MAX_METADATA_BYTES = 8 * 1024
MAX_QUERY_CHARS = 8 * 1024
MAX_FOUND = 100
"""The most results of one search."""

MemorySource: TypeAlias = Literal["user", "agent", "conversation"]
"""Who put a memory: a person or program, an agent by `remember`, or the end of a conversation."""


def _check_size(text: str) -> str:
    if (size := len(text.encode())) > MAX_TEXT_BYTES:
        raise ValueError(
            f"a memory has {MAX_TEXT_BYTES:,} bytes at most, and this one {size:,}: put the parts "
            "that matter as memories of their own"
        )
    return text


Word: TypeAlias = Annotated[str, Field(min_length=1, max_length=128)]
App: TypeAlias = Annotated[str, Field(max_length=255)]
"""The application to which a memory belongs; an empty name is one as any other."""
Key: TypeAlias = Annotated[str, Field(min_length=1, max_length=255)]
MemoryTags: TypeAlias = Annotated[tuple[Word, ...], Field(max_length=32)]
Query: TypeAlias = Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARS)]


class PutMemory(Frozen):
    """`POST /v1/memories`: remember a text; another one of the same `key` and app is replaced."""

    text: Annotated[str, Field(min_length=1), AfterValidator(_check_size)]
    key: Key | None = None
    """What the memory is about, such as `favourite-colour`: there is one memory of each key."""
    app: App = ""
    tags: MemoryTags = ()
    metadata: JsonObject = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits(self) -> "PutMemory":
        if not self.text.strip():
            raise ValueError("the text of a memory may not be empty")
        size = len(self.model_dump_json(include={"metadata"}).encode())
        if size > MAX_METADATA_BYTES:
            raise ValueError(
                f"`metadata` has {size:,} bytes, and {MAX_METADATA_BYTES:,} is the most"
            )
        return self


class Memory(Tolerant):
    """A memory; times are UTC."""

    id: str
    version: int = 1
    """1, and one more each time that a text was put under the same key."""
    text: str
    key: str | None = None
    app: str = ""
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)
    source: MemorySource = "user"
    conversation_id: str | None = None
    """The conversation of an agent's memory, or the one that was ingested."""
    created: Timestamp


class FoundMemory(Tolerant):
    """A result of a search; a higher score is better, and says nothing beside other searches."""

    memory: Memory
    score: float


class MemoryFilter(Frozen):
    """A filter of memories: all that is said must hold."""

    app: App | None = None
    """Only memories of this application; None does not look at it."""
    tags: MemoryTags = ()
    """Only memories with at least one of these tags."""
    source: MemorySource | None = None
    conversation_id: Annotated[str, Field(max_length=64)] | None = None

    def accepts(self, memory: Memory) -> bool:
        wanted = (self.source, self.conversation_id)
        actual = (memory.source, memory.conversation_id)
        return (
            (self.app is None or self.app == memory.app)
            and (not self.tags or bool(set(self.tags) & set(memory.tags)))
            and all(want in (None, has) for want, has in zip(wanted, actual, strict=True))
        )


class SearchMemories(MemoryFilter):
    """`POST /v1/search/memories`: find the memories that fit a query best."""

    query: Query
    limit: Annotated[int, Field(ge=1, le=MAX_FOUND)] = 10

    def to_filter(self) -> MemoryFilter:
        return MemoryFilter(**self.model_dump(include=set(MemoryFilter.model_fields)))


class FoundMemories(Tolerant):
    """The results of a search, the best first."""

    items: tuple[FoundMemory, ...]


class MemoryPage(Tolerant):
    """A page of the memories of a user, in the order of their ids."""

    items: tuple[Memory, ...]
    next_cursor: str | None = None


class Ingested(Tolerant):
    """The result of an ingestion: memories of a conversation that were not there before."""

    memories: int
    new: int


class Reindexed(Tolerant):
    """The number of memories in an index that was made anew."""

    memories: int
