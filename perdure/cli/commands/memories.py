"""`perdure memory`: put, search and remove memories, without Temporal."""

from typing import TYPE_CHECKING, Any

from perdure.api.memories import FoundMemory, Memory, MemoryFilter
from perdure.cli.arguments import parse_assignment, read_text
from perdure.cli.declarations.memories import (
    FilterOptions,
    Get,
    Ingest,
    List,
    Put,
    Reindex,
    Remove,
    Search,
)
from perdure.cli.environment import connect_gateway, find_environment
from perdure.cli.output import escape_controls, note, print_list, show, show_result
from perdure.client.memory.protocol import UserMemories, build_filter
from perdure.client.store import open_configured_store
from perdure.wording import count

if TYPE_CHECKING:
    from perdure.settings.settings import Settings

MAX_LINE_CHARS = 100


async def put(options: Put) -> None:
    memories = await _open()
    metadata = dict(map(parse_assignment, options.metadata or ()))
    memory = await memories.put(
        read_text(options.text), options.key, options.app, options.tags or (), metadata
    )
    show_result(_fields(memory), options.output, memory.id)


async def get(options: Get) -> None:
    memory = await (await _open()).get(options.memory)
    show_result(_fields(memory), options.output, escape_controls(memory.text))
    if options.output == "text":
        note(_describe(memory))


async def search(options: Search) -> None:
    found = await (await _open()).search(options.query, options.limit, _read_filter(options))
    with print_list(_found_fields, _show_found, options.output) as print_item:
        for item in found:
            print_item(item)
    if not found and options.output == "text":
        note("No memory fits.")


async def list_memories(options: List) -> None:
    memories = await _open()
    found = await memories.list_memories(options.limit, options.after, _read_filter(options))
    with print_list(_fields, _show_line, options.output) as print_item:
        for memory in found:
            print_item(memory)
    if len(found) == options.limit and options.output == "text":
        note(f"There may be more: --after {found[-1].id}")


async def remove(options: Remove) -> None:
    await (await _open()).remove(options.memory)
    show_result({"id": options.memory, "removed": True}, options.output, remark="It is removed.")


async def ingest(options: Ingest) -> None:
    done = await (await _open()).ingest(options.conversation_id)
    remark = f"{count(done.memories, 'memory', 'memories')} of it, {done.new:,} of them new."
    show_result(done.model_dump(), options.output, remark=remark)


async def reindex(options: Reindex) -> None:
    number = await (await _open()).reindex()
    remark = f"The index has {count(number, 'memory', 'memories')}."
    show_result({"memories": number}, options.output, remark=remark)


async def _open() -> UserMemories:
    """Open the user's memories: of the gateway that is set, else of the store."""
    settings = (await find_environment()).settings
    if settings.gateway is not None:
        from perdure.client.memory.http_memories import HttpMemories

        return HttpMemories(await connect_gateway(settings))
    return _open_stored(settings)


def _open_stored(settings: "Settings") -> UserMemories:
    from perdure.client.memory.memories import Memories  # slow, as all that knows models
    from perdure.client.memory.service import open_memories

    service = open_memories(settings.memory, open_configured_store(settings))
    return Memories(service.of_user(settings.user))


def _read_filter(options: FilterOptions) -> MemoryFilter:
    return build_filter(
        app=options.app,
        tags=tuple(options.tags or ()),
        source=options.source,
        conversation_id=options.conversation,
    )


def _fields(memory: Memory) -> dict[str, Any]:
    return memory.model_dump(mode="json", exclude_none=True)


def _found_fields(found: FoundMemory) -> dict[str, Any]:
    return {**_fields(found.memory), "score": found.score}


def _show_found(found: FoundMemory) -> None:
    _show_line(found.memory)


def _show_line(memory: Memory) -> None:
    line = " ".join(memory.text.split())
    short = line if len(line) <= MAX_LINE_CHARS else f"{line[: MAX_LINE_CHARS - 1]}…"
    show(escape_controls(f"{memory.id}  {short}"))


def _describe(memory: Memory) -> str:
    """Describe whose a memory is, in a line."""
    who = {"agent": "an agent", "conversation": "a conversation"}.get(memory.source, "you")
    parts = [
        f"put by {who} on {memory.created[:10]}",
        *([f"in {memory.conversation_id}"] if memory.conversation_id else []),
        *([f"key {memory.key}"] if memory.key else []),
        *([f"app {memory.app}"] if memory.app else []),
        *([f"tags {', '.join(memory.tags)}"] if memory.tags else []),
        *([f"version {memory.version}"] if memory.version > 1 else []),
    ]
    return escape_controls("; ".join(parts))
