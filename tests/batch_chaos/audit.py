"""Afterwards: every result, every conversation and every effect, against the plan."""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from evaluation.result import Attempt, SampleResult
from evaluation.score import Score
from events.usage import Usage
from examples.bfcl.objects import Objects, Stored, fetched, stored
from storage.batches import BatchFolder
from storage.errors import StoreError
from storage.keys import RESULTS, batch_prefix, conversation_prefix
from storage.log import EventLog
from storage.store import Store
from storage.verify import verify
from tests.batch_chaos.plan import FAILED, USER, Planned, expected
from tests.chaos.audit import TOLD, Account, audit
from tests.chaos.tools import Effect

AT_ONCE = 16
"""Conversations that are read side by side."""

NOBODY = Account({}, {})
"""What people were told: there are none."""


@dataclass
class Found:
    """`answers` are the ids of the model's answers on record, `unknown` counts calls of tools whose
    outcome nobody knew, by conversation."""

    breaches: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    events: int = 0
    unknown: Counter[str] = field(default_factory=Counter)
    results: dict[str, SampleResult] = field(default_factory=dict)


@dataclass
class Witness:
    """Remembers every result that there ever was, as it was."""

    store: Store
    batch: str
    seen: dict[str, str] = field(default_factory=dict)

    async def look(self) -> None:
        for key in await self._keys():
            if key not in self.seen:
                self.seen[key] = _sum(await self.store.read(key))

    async def lost(self) -> list[str]:
        """What was there once, and is not any more, or is another."""
        now = {key: _sum(await self.store.read(key)) for key in self.seen}
        return [
            f"{key} is not what it was once" for key, was in self.seen.items() if now[key] != was
        ]

    async def _keys(self) -> list[str]:
        prefix, found = batch_prefix(USER, self.batch) + RESULTS, list[str]()
        while page := await self.store.list(prefix, after=found[-1] if found else ""):
            found += page
        return found


async def audited(
    store: Store, batch: str, samples: Sequence[Planned], effects: Sequence[Effect]
) -> Found:
    """Look at all that is left of a batch."""
    found = Found()
    by_conversation: dict[str, list[Effect]] = {}
    for effect in effects:
        by_conversation.setdefault(effect.conversation_id, []).append(effect)
    names = {expected(one, batch).attempts[0].conversation_id: one for one in samples}
    for stranger in sorted(by_conversation.keys() - names.keys()):
        found.breaches.append(f"{stranger} has effects, and nobody knows it")
    room = asyncio.Semaphore(AT_ONCE)

    async def one(name: str, sample: Planned) -> None:
        async with room:
            await _conversation(store, name, sample, by_conversation.get(name, []), found)

    await asyncio.gather(*(one(name, sample) for name, sample in names.items()))
    async for result in BatchFolder(store, USER, batch).results():
        found.results[result.id] = result
    for sample in samples:
        found.breaches += _result(sample, batch, found)
    for name in sorted(found.results.keys() - {sample.id for sample in samples}):
        found.breaches.append(f"{name} has a result, and is no sample")
    found.answers += await _gradings(store, batch)
    return found


async def _conversation(
    store: Store, name: str, sample: Planned, effects: Sequence[Effect], found: Found
) -> None:
    objects = await fetched(store, conversation_prefix(USER, name))
    events = stored(objects)
    found.events += len(events)
    found.answers += _answers(objects)
    found.unknown[name] = sum(one.fields.get("classification") in TOLD for one in events)
    foreseen = {f"slot {one.seq}:" for one in events if _is_foreseen(one, sample)}
    wrong = [
        f"{one.wrong.value}: {one.what}"
        for one in audit(events, NOBODY, effects)
        if not any(one.what.startswith(slot) for slot in foreseen)
    ]
    wrong += _beginnings(events, sample)
    wrong += await _verified(EventLog(store, USER, name))
    found.breaches += [f"{sample.id} ({sample.kind}): {one}" for one in wrong]


def _is_foreseen(event: Stored, sample: Planned) -> bool:
    """Whether it is the error by which the sample has to end."""
    due = FAILED[sample.kind][1] if sample.kind in FAILED else "max_iterations"
    ends = sample.kind in FAILED or sample.kind == "endless"
    return ends and event.kind == "ConversationErrorEvent" and event.fields.get("code") == due


def _beginnings(events: Sequence[Stored], sample: Planned) -> Iterator[str]:
    """Whether it was begun, and set up, once, and every turn said once."""
    runs = {(one.fields.get("origin") or {}).get("run") for one in events}
    if len(runs) != 1:
        yield f"its events are of {len(runs)} workflows: it was begun more than once"
    said = [one.fields.get("message_id") for one in events if one.fields.get("message_id")]
    turns = 2 if sample.kind == "turned" else 1
    if said != [f"turn {nth}" for nth in range(turns)]:
        yield f"its turns are {said}"
    set_up = sum(one.fields.get("key") == "set_up" for one in events)
    if set_up != (sample.kind == "filed"):
        yield f"it was set up {set_up} times"


def _answers(objects: Objects) -> list[str]:
    kept = (body for key, body in objects.items() if "/responses/" in key)
    return [str(json.loads(body)["completion"]["id"]) for body in kept]


async def _gradings(store: Store, batch: str) -> list[str]:
    """The ids of the replies of the grading model."""
    prefix = batch_prefix(USER, batch) + RESULTS
    objects: Mapping[str, bytes] = await fetched(store, prefix)
    depth = prefix.count("/") + 2
    return [str(json.loads(body)["id"]) for key, body in objects.items() if key.count("/") == depth]


async def _verified(log: EventLog) -> list[str]:
    """What `perdure verify` says."""
    try:
        return [f"{one.key}: {one.what}" async for one in verify(log) if one.kind != "note"]
    except StoreError as error:
        return [str(error)]


def _result(sample: Planned, batch: str, found: Found) -> Iterator[str]:
    due, held = expected(sample, batch), found.results.get(sample.id)
    if held is None:
        yield f"{sample.id} ({sample.kind}): it has no result"
        return
    if len(held.attempts) != 1:
        numbers = [(one.epoch, one.number) for one in held.attempts]
        yield f"{sample.id} ({sample.kind}): its attempts are {numbers}"
    attempt, plan = held.attempts[0], due.attempts[0]
    unknown = found.unknown[plan.conversation_id]
    plain, foreseen = comparable(attempt), comparable(plan)
    if attempt.tool_errors != unknown:
        yield f"{sample.id} ({sample.kind}): {attempt.tool_errors} errors of tools, not {unknown}"
    if plain != foreseen or (held.target, held.metadata) != (due.target, due.metadata):
        yield f"{sample.id} ({sample.kind}): {_difference(plain, foreseen)}"


def comparable(attempt: Attempt) -> Attempt:
    """Without what depends on time, on the words of a grader, and on who was killed."""
    failure = attempt.failure
    scores = {name: Score(value=one.value) for name, one in attempt.scores.items()}
    return attempt.model_copy(
        update={
            "scores": scores,
            "usage": _tokens(attempt.usage),
            "grading": _tokens(attempt.grading),
            "failure": failure.model_copy(update={"detail": ""}) if failure else None,
            "seconds": 0.0,
            "tool_errors": 0,
        }
    )


def _tokens(usage: Usage) -> Usage:
    return Usage(prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens)


def _difference(held: Attempt, due: Attempt) -> str:
    one, other = held.model_dump(), due.model_dump()
    told = [f"{name} is {one[name]}, not {other[name]}" for name in one if one[name] != other[name]]
    return "; ".join(told) or "its target or its metadata are others"


def _sum(body: bytes | None) -> str:
    return hashlib.sha256(body or b"").hexdigest()
