"""The rows of an index in LanceDB, and the conditions of its queries.

The library is slow to import (a second or more) and large: it is imported where it is first used.
"""

import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from perdure.api.memories import Memory, MemoryFilter
from perdure.errors import MissingExtra
from perdure.memory.records import Version

Vector = Sequence[float]

MODEL_KEY = b"embedding_model"
"""The key of a table's metadata that names the model of its vectors."""


@dataclass(frozen=True)
class Row:
    """A memory, with its vector where an embedding model is set."""

    memory: Memory
    vector: Vector | None = None


@dataclass(frozen=True)
class Match:
    """A result of the index; a higher score is better."""

    version: Version
    score: float


@dataclass(frozen=True)
class _Library:
    """The modules of LanceDB and Arrow, which have no types."""

    lancedb: Any
    index: Any
    rerankers: Any
    arrow: Any


@cache
def load_library() -> _Library:
    """Import LanceDB, which takes a second or more. Raises MissingExtra."""
    # Else it warns on stderr of what is no concern of whoever runs a command.
    os.environ.setdefault("LANCEDB_LOG", "error")
    names = ("lancedb", "lancedb.index", "lancedb.rerankers", "pyarrow")
    try:
        return _Library(*map(importlib.import_module, names))
    except ImportError as error:
        raise MissingExtra("A search of memories", "memory") from error


def text_index() -> Any:
    return load_library().index.FTS(with_position=False)


def to_new_table(rows: Sequence[Row], model: str | None) -> Any:
    """Convert rows, at least one, to a table of Arrow for a new table of LanceDB."""
    arrow = load_library().arrow
    text = arrow.string()
    fields = {
        "id": text,
        "version": arrow.int32(),
        "app": text,
        "tags": arrow.list_(text),
        "source": text,
        "conversation_id": text,
        "text": text,
    }
    if (first := rows[0].vector) is not None:
        fields["vector"] = arrow.list_(arrow.float32(), len(first))
    metadata = {MODEL_KEY: model.encode()} if model else None
    return to_arrow(rows, arrow.schema(fields, metadata))


def to_arrow(rows: Sequence[Row], schema: Any) -> Any:
    """Convert rows to a table of Arrow; `schema` is its own or that of the table of LanceDB."""
    values = [row.memory.model_dump(include=set(schema.names)) for row in rows]
    if "vector" in schema.names:
        for value, row in zip(values, rows, strict=True):
            value["vector"] = None if row.vector is None else list(row.vector)
    return load_library().arrow.Table.from_pylist(values, schema=schema)


def score(row: dict[str, Any]) -> float:
    if "_distance" in row:
        return 1.0 - float(row["_distance"])
    return float(row.get("_relevance_score", row.get("score", 0.0)))


def condition(only: MemoryFilter) -> str:
    """Write a filter as a condition of SQL."""
    wanted = {"app": only.app, "source": only.source, "conversation_id": only.conversation_id}
    parts = [f"{name} = {_quote(value)}" for name, value in wanted.items() if value is not None]
    if only.tags:
        tags = " OR ".join(f"array_has(tags, {_quote(tag)})" for tag in only.tags)
        parts.append(f"({tags})")
    return " AND ".join(parts)


def older_than(versions: Sequence[Version]) -> str:
    """Write the condition of rows that are older than one of the versions of their memory."""
    return " OR ".join(f"(id = {_quote(it.id)} AND version < {it.number})" for it in versions)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
