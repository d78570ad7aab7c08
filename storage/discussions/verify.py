"""Verification that everything stored of a discussion is what was written."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from perdure.agent.discussion.log_state import LogState, apply_events, apply_pruning
from perdure.agent.discussion.spec import DiscussionSpec
from perdure.events.discussion import DiscussionEvent
from perdure.events.entry import Entry, parse_entry
from perdure.events.event import UnknownEvent
from perdure.storage import keys
from perdure.storage.discussions.archive import Pruning
from perdure.storage.log.inspection import Finding
from perdure.storage.parallel import map_parallel
from perdure.storage.store import Store, list_keys


@dataclass
class Verified:
    """The events of a discussion in order, up to the first bad one, and its faults."""

    objects: int = 0
    events: int = 0
    speakers: tuple[str, ...] = ()
    """Those who have conversations, by the spec."""
    findings: list[Finding] = field(default_factory=list)
    whole: list[tuple[DiscussionEvent, str]] = field(default_factory=list)


async def verify_discussion(store: Store, user_id: str, session_id: str) -> Verified:
    """Read every object of a discussion, from the store and from no cache.

    Raises ValueError for a bad id, and the errors of the store.
    """
    prefix = keys.discussion_prefix(user_id, session_id)
    names = [key async for key in list_keys(store, prefix)]
    listed = [key for key in names if key.startswith(prefix + keys.EVENTS)]
    last = max(map(_number, listed), default=0)
    verified = Verified(objects=len(names), events=last)
    slots = [prefix + keys.shared_event_key(nth) for nth in range(1, verified.events + 1)]
    previous: str | None = ""
    async for key, body in map_parallel(lambda key: _read(store, key), slots):
        previous = _check_event(verified, key, body, previous)
    prunings = await _check_prunings(store, names, prefix, verified)
    for key in names:
        if not key.startswith((prefix + keys.EVENTS, prefix + keys.ARCHIVE)):
            finding = _check_other(key, prefix, await store.read(key) or b"", verified, prunings)
            verified.findings += [finding] if finding else []
    return verified


async def _read(store: Store, key: str) -> tuple[str, bytes | None]:
    return key, await store.read(key)


def _check_event(
    verified: Verified, key: str, body: bytes | None, previous: str | None
) -> str | None:
    """Check an event and that it follows the one before; return its hash, None for a bad one."""
    seq = _number(key)
    if body is None:
        verified.findings.append(Finding("missing", key, "the event is not there", seq))
        return None
    try:
        entry = parse_entry(seq, body)
        event = _parse_event(entry)
    except ValueError:
        verified.findings.append(Finding("damaged", key, "the event cannot be read", seq))
        return None
    if previous is not None and entry.previous_sha != previous:
        detail = "the event before it is not the one that it was written behind"
        verified.findings.append(Finding("altered", key, detail, seq))
    if len(verified.whole) == seq - 1:
        verified.whole.append((event, entry.sha))
    return entry.sha


def _parse_event(entry: Entry) -> DiscussionEvent:
    stored = entry.event
    if not isinstance(stored, UnknownEvent) or stored.raw.get("sequence") != entry.seq:
        raise ValueError("this is no event of this slot")
    return DiscussionEvent.model_validate(stored.raw)


async def _check_prunings(
    store: Store, names: Sequence[str], prefix: str, verified: Verified
) -> list[Pruning]:
    """Check the manifest; return its prunings up to the first bad one."""
    listed = [key for key in names if key.startswith(prefix + keys.ARCHIVE)]
    prunings: list[Pruning] = []
    for number, key in enumerate(listed, 1):
        try:
            pruning = Pruning.model_validate_json(await store.read(key) or b"")
            is_right = (_number(key), pruning.number) == (number, number)
        except ValidationError:
            is_right = False
        if not is_right:
            detail = "this part of the archive's manifest is not what was written"
            verified.findings.append(Finding("beside", key, detail))
            break
        prunings.append(pruning)
    return prunings


def _check_other(
    key: str, prefix: str, body: bytes, verified: Verified, prunings: Sequence[Pruning]
) -> Finding | None:
    try:
        match key.removeprefix(prefix).split("/")[0]:
            case keys.DISCUSSION:
                verified.speakers = DiscussionSpec.model_validate_json(body).speakers()
            case keys.DISCUSSION_STATE:
                state = LogState.model_validate_json(body)
                if state not in _fold(verified.whole, prunings, state):
                    return Finding("beside", key, "the state is not what the events come to")
            case _:
                json.loads(body)
    except ValueError:
        return Finding("beside", key, "the object cannot be read")
    return None


def _fold(
    events: Sequence[tuple[DiscussionEvent, str]], prunings: Sequence[Pruning], cached: LogState
) -> Iterator[LogState]:
    """Yield the state of the log where the cached one was saved, if the events are whole to it."""
    if cached.end > len(events) or cached.prunings > len(prunings):
        return
    state = apply_events(LogState(), events[: cached.end])
    for pruning in prunings[: cached.prunings]:
        state = apply_pruning(state, pruning.number, pruning.sequences())
    yield state


def _number(key: str) -> int:
    """Return the number of an object; 0 for a name that is none."""
    name = key.rpartition("/")[2].partition(".")[0]
    return int(name) if name.isdecimal() else 0
