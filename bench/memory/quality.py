"""The recall of memories: questions of BFCL about 37 conversations, whose answers are known.

BFCL's category `memory` has five people: a customer, an investor, a patient, one who takes notes, a
student. Each turn of a person's conversations is a memory of a user. A question is answered by the
turns that have the sentence which BFCL names as the source of its answer; questions without such a
turn (12 of 155, whose sentence stands nowhere) are left out.
"""

import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from perdure.api.memories import MemoryFilter, PutMemory
from perdure.memory.service import MemoryService
from perdure.memory.user_memory import UserMemory
from perdure.models.embedding import load_embedder
from perdure.storage.files import FileStore

EMBEDDING_MODEL = "python:bench.memory.minilm:embed"
PEOPLE = ("customer", "finance", "healthcare", "notetaker", "student")
DEPTHS = (1, 5, 10)
WAYS = ("full text", "vectors", "hybrid")
MIN_SOURCE_CHARS = 8
EVERYTHING = MemoryFilter()


@dataclass(frozen=True)
class Question:
    """A question of a person, and the turns that answer it, by their numbers."""

    text: str
    answers: frozenset[int]


@dataclass(frozen=True)
class Person:
    """A person: the turns of their conversations, and the questions about them."""

    name: str
    turns: tuple[str, ...]
    questions: tuple[Question, ...]


def load_people() -> list[Person]:
    """Load the set from the package of BFCL. Raises FileNotFoundError."""
    found = find_spec("bfcl_eval")
    if found is None or found.origin is None:
        raise FileNotFoundError("BFCL is missing: run `make .venv/bfcl`.")
    folder = Path(found.origin).parent / "data"
    sources = {
        row["id"]: row["source"]
        for row in read_rows(folder / "possible_answer/BFCL_v4_memory.json")
    }
    rows = read_rows(folder / "BFCL_v4_memory.json")
    people = []
    for name in PEOPLE:
        sessions = read_rows(folder / f"memory_prereq_conversation/memory_{name}.json")
        turns = tuple(
            message["content"]
            for session in sessions
            for turn in session["question"]
            for message in turn
        )
        asked = [row for row in rows if row["scenario"] == name]
        questions = (
            Question(row["question"][0][0]["content"], find_turns(sources[row["id"]], turns))
            for row in asked
        )
        people.append(Person(name, turns, tuple(each for each in questions if each.answers)))
    return people


def read_rows(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def find_turns(source: str, turns: Sequence[str]) -> frozenset[int]:
    """Find the turns that have a part of the source, which marks what it leaves out by dots."""
    parts = [simplify(part) for part in re.split(r"\.\.\.|…", source)]
    return frozenset(
        nth
        for nth, turn in enumerate(turns)
        if any(len(part) > MIN_SOURCE_CHARS and part in simplify(turn) for part in parts)
    )


def simplify(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", text.lower()).strip()


async def measure_quality(folder: Path, people: Sequence[Person]) -> dict[str, Any]:
    """Put the turns, ask the questions in each way, and return the shares that are answered."""
    embedder = load_embedder(EMBEDDING_MODEL)
    plain = MemoryService(FileStore(folder / "plain"))
    embedded = MemoryService(FileStore(folder / "embedded"), embedder)
    ranks: dict[str, list[int | None]] = {way: [] for way in WAYS}
    seconds = dict.fromkeys(WAYS, 0.0)
    for person in people:
        by_text, by_both = plain.of_user(person.name), embedded.of_user(person.name)
        numbers = {
            id(memory): await put_turns(memory, person.turns) for memory in (by_text, by_both)
        }
        for memory in (by_text, by_both):
            await memory.reindex()
        for question in person.questions:
            for way in WAYS:
                memory = by_text if way == "full text" else by_both
                begun = time.perf_counter()
                found = await search(memory, question.text, way)
                seconds[way] += time.perf_counter() - begun
                ranks[way].append(find_rank([numbers[id(memory)][it] for it in found], question))
    asked = len(ranks["hybrid"])
    return {
        way: {
            **{f"recall@{depth}": share(ranks[way], depth) for depth in DEPTHS},
            "ms": round(seconds[way] / asked * 1000, 1),
            "questions": asked,
        }
        for way in WAYS
    }


async def put_turns(memory: UserMemory, turns: Sequence[str]) -> dict[str, int]:
    """Put each turn; return its number by the id of its memory."""
    return {(await memory.put(PutMemory(text=turn))).id: nth for nth, turn in enumerate(turns)}


async def search(memory: UserMemory, query: str, way: str) -> list[str]:
    """Search in one way; return the ids of the ten best."""
    if way != "vectors":
        return [found.memory.id for found in await memory.search(query, DEPTHS[-1])]
    assert memory.embedder is not None
    [vector] = await memory.embedder.embed([query])
    matches = await memory.index.search_vector(vector, DEPTHS[-1], EVERYTHING)
    return [match.version.id for match in matches]


def find_rank(found: Sequence[int], question: Question) -> int | None:
    """Return the place of the first answer, from 1; None without one."""
    return next((rank for rank, nth in enumerate(found, 1) if nth in question.answers), None)


def share(ranks: Sequence[int | None], depth: int) -> float:
    return round(sum(rank is not None and rank <= depth for rank in ranks) / len(ranks), 3)
