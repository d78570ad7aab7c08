"""The audit of a batch: results, conversations and effects against the plan."""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from examples.bfcl.objects import StoredEvent, fetch_objects, parse_objects, recorded_response_ids
from perdure.evaluation.result import AttemptResult, SampleResult
from perdure.evaluation.score import Score
from perdure.events.usage import Usage
from perdure.storage.batches import BatchFolder
from perdure.storage.errors import StoreError
from perdure.storage.keys import RESULTS, batch_prefix, conversation_prefix
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.verify import verify
from perdure.storage.store import Store
from reliability.batch_chaos.plan import FAILED, USER, PlannedSample, expected_result
from reliability.chaos.audit.log import OUTCOME_UNKNOWN_TEXT, Acknowledgements, audit
from reliability.chaos.tools import Effect

CONCURRENCY = 16
"""Conversations that are read side by side."""

NO_ACKNOWLEDGEMENTS = Acknowledgements({}, {})
"""The acknowledgements of a batch, in which nobody sends messages."""


@dataclass
class AuditResult:
    """`answers` are the ids of the model's answers on record, `unknown` counts calls of tools whose
    outcome nobody knew, by conversation."""

    violations: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    events: int = 0
    unknown_outcomes: Counter[str] = field(default_factory=Counter)
    results: dict[str, SampleResult] = field(default_factory=dict)


@dataclass
class ResultMonitor:
    """Records every result when it is first seen."""

    store: Store
    batch: str
    seen: dict[str, str] = field(default_factory=dict)

    async def observe(self) -> None:
        for key in await self._keys():
            if key not in self.seen:
                self.seen[key] = checksum(await self.store.read(key))

    async def changed_results(self) -> list[str]:
        """List the results that disappeared or changed."""
        now = {key: checksum(await self.store.read(key)) for key in self.seen}
        return [
            f"{key} is not what it was once" for key, was in self.seen.items() if now[key] != was
        ]

    async def _keys(self) -> list[str]:
        prefix, keys = batch_prefix(USER, self.batch) + RESULTS, list[str]()
        while page := await self.store.list(prefix, after=keys[-1] if keys else ""):
            keys += page
        return keys


async def audit_batch(
    store: Store, batch: str, samples: Sequence[PlannedSample], effects: Sequence[Effect]
) -> AuditResult:
    """Audit the stored objects of a batch."""
    audited = AuditResult()
    by_conversation: dict[str, list[Effect]] = {}
    for effect in effects:
        by_conversation.setdefault(effect.conversation_id, []).append(effect)
    names = {expected_result(item, batch).attempts[0].conversation_id: item for item in samples}
    for stranger in sorted(by_conversation.keys() - names.keys()):
        audited.violations.append(f"{stranger} has effects, and nobody knows it")
    room = asyncio.Semaphore(CONCURRENCY)

    async def audit_sample_log(name: str, sample: PlannedSample) -> None:
        async with room:
            await audit_conversation(store, name, sample, by_conversation.get(name, []), audited)

    await asyncio.gather(*(audit_sample_log(name, sample) for name, sample in names.items()))
    async for result in BatchFolder(store, USER, batch).read_results():
        audited.results[result.id] = result
    for sample in samples:
        audited.violations += check_result(sample, batch, audited)
    for name in sorted(audited.results.keys() - {sample.id for sample in samples}):
        audited.violations.append(f"{name} has a result, and is no sample")
    audited.answers += await grading_ids(store, batch)
    return audited


async def audit_conversation(
    store: Store, name: str, sample: PlannedSample, effects: Sequence[Effect], result: AuditResult
) -> None:
    objects = await fetch_objects(store, conversation_prefix(USER, name))
    events = parse_objects(objects)
    result.events += len(events)
    result.answers += recorded_response_ids(objects)
    result.unknown_outcomes[name] = sum(
        event.fields.get("classification") in OUTCOME_UNKNOWN_TEXT for event in events
    )
    foreseen = {f"slot {event.seq}:" for event in events if is_expected_error(event, sample)}
    wrong = [
        f"{item.kind.value}: {item.description}"
        for item in audit(events, NO_ACKNOWLEDGEMENTS, effects)
        if not any(item.description.startswith(slot) for slot in foreseen)
    ]
    wrong += check_starts(events, sample)
    wrong += await verify_log(EventLog(store, USER, name))
    result.violations += [f"{sample.id} ({sample.kind}): {item}" for item in wrong]


def is_expected_error(event: StoredEvent, sample: PlannedSample) -> bool:
    """Check that it is the error by which the sample has to end."""
    due = FAILED[sample.kind][1] if sample.kind in FAILED else "max_iterations"
    ends = sample.kind in FAILED or sample.kind == "endless"
    return ends and event.kind == "ConversationErrorEvent" and event.fields.get("code") == due


def check_starts(events: Sequence[StoredEvent], sample: PlannedSample) -> Iterator[str]:
    """Check that the sample was begun and set up once, and every turn said once."""
    runs = {(event.fields.get("origin") or {}).get("run") for event in events}
    if len(runs) != 1:
        yield f"its events are of {len(runs)} workflows: it was begun more than once"
    message_ids = [
        event.fields.get("message_id") for event in events if event.fields.get("message_id")
    ]
    turns = 2 if sample.kind == "turned" else 1
    if message_ids != [f"turn {nth}" for nth in range(turns)]:
        yield f"its turns are {message_ids}"
    set_up = sum(event.fields.get("key") == "set_up" for event in events)
    if set_up != (sample.kind == "filed"):
        yield f"it was set up {set_up} times"


async def grading_ids(store: Store, batch: str) -> list[str]:
    """The ids of the replies of the grading model."""
    prefix = batch_prefix(USER, batch) + RESULTS
    objects: Mapping[str, bytes] = await fetch_objects(store, prefix)
    depth = prefix.count("/") + 2
    return [str(json.loads(body)["id"]) for key, body in objects.items() if key.count("/") == depth]


async def verify_log(log: EventLog) -> list[str]:
    """Return the findings of a verification."""
    try:
        return [f"{item.key}: {item.detail}" async for item in verify(log) if item.kind != "note"]
    except StoreError as error:
        return [str(error)]


def check_result(sample: PlannedSample, batch: str, result: AuditResult) -> Iterator[str]:
    due, held = expected_result(sample, batch), result.results.get(sample.id)
    if held is None:
        yield f"{sample.id} ({sample.kind}): it has no result"
        return
    if len(held.attempts) != 1:
        numbers = [(item.epoch, item.number) for item in held.attempts]
        yield f"{sample.id} ({sample.kind}): its attempts are {numbers}"
    attempt, plan = held.attempts[0], due.attempts[0]
    unknown = result.unknown_outcomes[plan.conversation_id]
    plain, foreseen = comparable(attempt), comparable(plan)
    if attempt.tool_errors != unknown:
        yield f"{sample.id} ({sample.kind}): {attempt.tool_errors} errors of tools, not {unknown}"
    if plain != foreseen or (held.target, held.metadata) != (due.target, due.metadata):
        yield f"{sample.id} ({sample.kind}): {describe_difference(plain, foreseen)}"


def comparable(attempt: AttemptResult) -> AttemptResult:
    """Without what depends on time, on the words of a grader, and on who was killed."""
    failure = attempt.failure
    scores = {name: Score(value=item.value) for name, item in attempt.scores.items()}
    return attempt.model_copy(
        update={
            "scores": scores,
            "usage": total_tokens(attempt.usage),
            "grading": total_tokens(attempt.grading),
            "failure": failure.model_copy(update={"detail": ""}) if failure else None,
            "seconds": 0.0,
            "tool_errors": 0,
        }
    )


def total_tokens(usage: Usage) -> Usage:
    return Usage(prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens)


def describe_difference(held: AttemptResult, due: AttemptResult) -> str:
    actual, expected = held.model_dump(), due.model_dump()
    differences = [
        f"{name} is {actual[name]}, not {expected[name]}"
        for name in actual
        if actual[name] != expected[name]
    ]
    return "; ".join(differences) or "its target or its metadata are others"


def checksum(body: bytes | None) -> str:
    return hashlib.sha256(body or b"").hexdigest()
