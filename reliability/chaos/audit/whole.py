"""The audit of a whole run: each conversation, each debate, and what they share."""

import asyncio
import json
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from examples.bfcl.objects import Objects, StoredEvent, fetch_objects, parse_objects
from perdure.memory.service import MemoryService
from perdure.storage import keys
from perdure.storage.errors import StoreError
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.verify import verify
from perdure.storage.noted_values import load_own_values
from reliability.chaos.audit.calls import successful_calls
from reliability.chaos.audit.debates import check_debate, read_events
from reliability.chaos.audit.files import check_files
from reliability.chaos.audit.log import Acknowledgements, Violation, ViolationKind, audit
from reliability.chaos.audit.memories import check_memories, check_search, parse_memories
from reliability.chaos.audit.start import check_secrets, check_start
from reliability.chaos.audit.state import check_books, check_own_state, parse_books
from reliability.chaos.environment import USER
from reliability.chaos.load.conversations import LoadConversation
from reliability.chaos.load.debates import SPEAKERS, LoadDebate
from reliability.chaos.load.equipped_scripts import MAX_FOUND
from reliability.chaos.load.load import Load
from reliability.chaos.report import Report
from reliability.chaos.stage import Stage
from reliability.chaos.tools import Effect, read_effects
from reliability.crashes.debate import Debate, read_debate
from reliability.crashes.scenario import SECRETS

MAX_SEARCHES = 50
"""The most words that are searched for once all is over."""

Findings = list[tuple[str, Violation]]


async def audit_run(stage: Stage, load: Load, report: Report, folder: Path) -> None:
    """Write what a run has left behind, and all that is wrong with it, into the report."""
    effects = read_effects(stage.effects)
    report.effects = len(effects)
    logs = {
        talk.conversation.id: await audit_conversation(talk, effects, report, folder)
        for talk in load.conversations
    }
    strange = {effect.conversation_id for effect in effects} - set(logs)
    report.violations += [
        (item, Violation(ViolationKind.LOST, "nobody knows it")) for item in strange
    ]
    undisturbed = await read_debate(stage.client, load.undisturbed.handle)
    for debate in (load.undisturbed, *load.debates):
        report.violations += await audit_debate(stage, debate, undisturbed, report)
    report.violations += await audit_shared(stage, logs, report)
    report.violations += [
        ("the machine", item) for item in check_secrets(read_machine(folder), SECRETS)
    ]
    for words in stage.workers.crash_outputs:
        report.violations.append(("a worker", Violation(ViolationKind.FAILED, words)))
    report.responses_generated = await asyncio.to_thread(count_responses, stage.model)


async def audit_conversation(
    talk: LoadConversation, effects: Sequence[Effect], report: Report, folder: Path
) -> list[StoredEvent]:
    """Audit a conversation, and return its events."""
    log = talk.conversation.log
    objects = await fetch_objects(log.store, keys.conversation_prefix(USER, log.conversation_id))
    events = parse_objects(objects)
    mine = [effect for effect in effects if effect.conversation_id == log.conversation_id]
    report.count(talk, events, objects, mine)
    findings = list(audit(events, Acknowledgements(talk.message_ids, talk.slots), mine))
    if talk.end != "" or not is_closed(events):
        what = talk.end or "its log is not closed"
        findings.append(Violation(ViolationKind.UNFINISHED, what))
    findings += await verify_log(log)
    findings += await check_files(log.store, events, folder, equipped=talk.equipped)
    findings += check_secrets(objects, SECRETS)
    if talk.equipped:
        findings += check_start(events)
        findings += check_own_state(events, await load_own_values(log))
    report.violations += [(log.conversation_id, violation) for violation in findings]
    return events


def is_closed(events: Sequence[StoredEvent]) -> bool:
    states = (event for event in events if event.kind == "ConversationStateUpdateEvent")
    return any(state.fields.get("value") == "closed" for state in states)


async def verify_log(log: EventLog) -> list[Violation]:
    """Return the findings of a verification."""
    try:
        findings = [finding async for finding in verify(log) if finding.kind != "note"]
    except StoreError as error:
        return [Violation(ViolationKind.DAMAGED, str(error))]
    return [Violation(ViolationKind.DAMAGED, f"{item.key}: {item.detail}") for item in findings]


async def audit_debate(
    stage: Stage, debate: LoadDebate, undisturbed: Debate, report: Report
) -> Findings:
    """Audit a debate, and the conversations in which its agents took their turns."""
    store, handle = stage.client.store, debate.handle
    if debate.end != "":
        return [(handle.id, Violation(ViolationKind.UNFINISHED, debate.end or "it goes on"))]
    objects = await fetch_objects(store, keys.discussion_prefix(USER, handle.id))
    seen = await read_debate(stage.client, handle)
    findings = list(check_debate(objects, debate.result, seen, undisturbed))
    logs = [handle.open_log(name) for name in SPEAKERS]
    turns = [
        await fetch_objects(store, keys.conversation_prefix(USER, log.conversation_id))
        for log in logs
    ]
    for log, held in zip(logs, turns, strict=True):
        findings += audit(parse_objects(held), Acknowledgements({}, {}), [])
        findings += await verify_log(log)
    report.count_debate(debate, len(read_events(objects)), turns)
    return [(handle.id, violation) for violation in findings]


async def audit_shared(
    stage: Stage, logs: Mapping[str, Sequence[StoredEvent]], report: Report
) -> Findings:
    """Audit what conversations share: the values of their user and of all users, and memories."""
    store = stage.client.store
    state = await fetch_objects(store, keys.user_state_prefix(USER))
    books = parse_books({**state, **await fetch_objects(store, keys.APP_STATE)}, USER)
    memories = await fetch_objects(store, keys.memory_prefix(USER))
    texts = parse_memories(memories)
    report.marks, report.memories = sum(map(len, books.values())), len(texts)
    findings = [*check_books(logs, books), *check_memories(logs, texts)]
    recalls = (call for events in logs.values() for call in successful_calls(events, "recall"))
    found = MemoryService(store).of_user(USER)
    for word in sorted({call.arguments["query"] for call in recalls})[:MAX_SEARCHES]:
        ids = [item.memory.id for item in await found.search(word, MAX_FOUND)]
        findings += [("memories", violation) for violation in check_search(word, ids, texts)]
    exposed = check_secrets({**state, **memories}, SECRETS)
    return [*findings, *(("shared", violation) for violation in exposed)]


def read_machine(folder: Path) -> Objects:
    """Read what the workers have printed, and all that Temporal keeps."""
    files = (*folder.glob("worker-*.log"), *folder.glob("temporal/*"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def count_responses(model: str) -> int:
    """Count the complete responses of the model."""
    with urllib.request.urlopen(f"{model.removesuffix('/v1')}/calls") as answer:
        return sum(call["answered"] for call in json.load(answer)["calls"])
