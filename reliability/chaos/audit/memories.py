"""The audit of memories: each that was acknowledged is there once, and is found."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from examples.bfcl.objects import Objects, StoredEvent, parse_fields
from reliability.chaos.audit.calls import answered_calls, list_actions, successful_calls
from reliability.chaos.audit.log import Violation, ViolationKind
from reliability.chaos.load.equipped_scripts import MAX_FOUND

VERSION = re.compile(r"/memory/([0-9a-f-]{36})\.(\d{6})\.json$")

Texts = Mapping[str, Sequence[str]]
"""The texts of each memory by its id: one for each version of it."""


def check_memories(
    logs: Mapping[str, Sequence[StoredEvent]], texts: Texts
) -> Iterator[tuple[str, Violation]]:
    """Check the stored memories against the calls in all logs; by the id of the conversation."""
    asked: set[str] = set()
    for conversation_id, events in logs.items():
        asked |= {action.id for action in list_actions(events, "remember")}
        for call in answered_calls(events, "remember"):
            for violation in _check_memory(call.action, texts, acknowledged=call.succeeded):
                yield conversation_id, violation
        for violation in check_recalls(events, texts):
            yield conversation_id, violation
    for memory_id in sorted(set(texts) - asked):
        yield memory_id, Violation(ViolationKind.LOST, "nobody is on record for this memory")


def _check_memory(action: StoredEvent, texts: Texts, *, acknowledged: bool) -> Iterator[Violation]:
    found = texts.get(action.id, ())
    if acknowledged and not found:
        what = f"the memory of slot {action.seq} was acknowledged"
        yield Violation(ViolationKind.LOST, what)
    if len(found) > 1:
        what = f"the memory of slot {action.seq} has {len(found)} versions"
        yield Violation(ViolationKind.DUPLICATED, what)
    if any(text != action.fields["action"]["data"]["text"] for text in found):
        what = f"the memory of slot {action.seq} is {list(found)}"
        yield Violation(ViolationKind.DAMAGED, what)


def check_recalls(events: Sequence[StoredEvent], texts: Texts) -> Iterator[Violation]:
    """Check that each recall found what its conversation had put before, unless it is crowded."""
    put = list(successful_calls(events, "remember"))
    for call in successful_calls(events, "recall"):
        word = call.arguments["query"]
        if sum(word in text for versions in texts.values() for text in versions) > MAX_FOUND:
            continue
        for memory in put:
            is_due = memory.answer.seq < call.action.seq and word in memory.arguments["text"]
            if is_due and f'id="{memory.action.id}"' not in call.text:
                what = f"slot {call.answer.seq} did not find the memory {memory.action.id}"
                yield Violation(ViolationKind.LOST, what)


def check_search(word: str, found: Sequence[str], texts: Texts) -> Iterator[Violation]:
    """Check what a search for a word found, once all is over: each memory with it, once."""
    due = sorted(key for key, versions in texts.items() if any(word in it for it in versions))
    if len(due) <= MAX_FOUND and sorted(found) != due:
        what = f"a search for {word} found {sorted(found)}, and not {due}"
        yield Violation(ViolationKind.LOST, what)


def parse_memories(objects: Objects) -> dict[str, list[str]]:
    """Return the texts of the memories in these objects, by id; a version without one counts."""
    texts: dict[str, list[str]] = defaultdict(list)
    for key, body in objects.items():
        if match := VERSION.search(key):
            texts[match[1]].append(str(parse_fields(body).get("text", "")))
    return dict(texts)
