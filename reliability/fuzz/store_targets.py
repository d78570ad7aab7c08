"""Fuzz targets that read stored objects."""

import asyncio
import json
import uuid
import zlib
from pathlib import Path

from perdure.agent.loop.evolve import fold
from perdure.agent.loop.start import build_status
from perdure.agent.loop.state import State
from perdure.agent.spec import Agent, ModelSpec
from perdure.events.base import UNASSIGNED_ID
from perdure.events.entry import add_checksum, make_entry, parse_entry
from perdure.events.event import AnyEvent
from perdure.events.projection import summarize
from perdure.events.summary import EventSummary
from perdure.storage import keys
from perdure.storage.conversations import list_conversations
from perdure.storage.errors import StoreError
from perdure.storage.log.event_log import EventLog
from perdure.storage.log.fork import forked_seqs, forks_of
from perdure.storage.log.lineage import Fork
from perdure.storage.log.reader import ResponseRecord
from perdure.storage.log.state import read_state, read_state_until_damage
from perdure.storage.log.trouble import load_trouble
from perdure.storage.noted_values import load_session_state
from perdure.storage.snapshots.manifest import (
    RESTORE_LIMITS,
    decode_entries,
    encode_manifest,
    parse_manifest,
)
from perdure.storage.snapshots.tree import File, Folder, Location, Tree, check_tree
from perdure.temporal.converter import CONVERTER
from reliability.fuzz.watch import Target, check_error
from tests import builders
from tests.storage.memory import MemoryStore

GOLDEN = Path(__file__).parents[2] / "tests" / "golden" / "events"
SLOT = 7
USER = "ada"

EVENTS = (
    *(path.read_bytes() for path in sorted(GOLDEN.iterdir())),
    *(entry.body for entry in builders.entries(builders.EVENT_OF_EACH_KIND)),
    add_checksum(builders.entries(builders.EVENT_OF_EACH_KIND, SLOT)[0], "0" * 32).body,
)

MAX_SUMMARY_BYTES = 4_096
"""Bytes of a digest, whatever the event; that of a spec is as long as the spec."""


def read_entry(body: bytes) -> None:
    try:
        entry = parse_entry(SLOT, body)
    except ValueError:
        return
    summary = summarize(entry)
    [written] = CONVERTER.payload_converter.to_payloads([summary])
    [back] = CONVERTER.payload_converter.from_payloads([written], [EventSummary])
    assert repr(back) == repr(summary), "what Temporal is given comes back"
    assert len(written.data) < MAX_SUMMARY_BYTES + (summary.key == "spec") * 2 * len(body)
    again = make_entry(SLOT, entry.event, entry.origin, entry.usage, entry.files)
    assert summarize(parse_entry(SLOT, again.body)).fingerprint == summary.fingerprint
    sealed = add_checksum(again, "0" * 32)
    assert parse_entry(SLOT, sealed.body).event == parse_entry(SLOT, again.body).event
    if summary.key != "spec":  # one of a newer version is refused
        fold(State(next_seq=SLOT), [summary])


PREFIX = keys.conversation_prefix(USER, builders.CONVERSATION)
PLACES = (
    keys.FORK,
    keys.STATE,
    keys.TROUBLE,
    keys.TAIL,
    keys.response_key(1),
    keys.segment_key(0, 6),
    keys.fork_mark_key(str(uuid.UUID(int=1))),
    keys.event_key(builders.CONVERSATION, 1),
    f"{keys.SEGMENTS}tail",
    f"{keys.EVENTS}000009_stray",
)
SHARED = (f"{keys.APP_STATE}a.json", f"{keys.user_state_prefix(USER)}b.json")


def read_store(data: bytes) -> None:
    """The first byte says which object the rest is in the place of."""
    if not _WRITTEN:
        asyncio.run(_write())
    places = [*(PREFIX + place for place in PLACES), *SHARED]
    asyncio.run(_read_store(places[data[0] % len(places)] if data else places[0], data[1:]))


async def _read_store(place: str, body: bytes) -> None:
    store = MemoryStore()
    store.objects = {**_WRITTEN, place: body}
    log = EventLog(store, USER, builders.CONVERSATION)
    for reading in (
        log.lineage,
        log.end,
        log.end_and_gap,
        lambda: log.read(0, 10),
        lambda: log.read_response(1),
        lambda: read_state(log),
        lambda: read_state_until_damage(log),
        lambda: load_trouble(log, 6),
        lambda: forks_of(log),
        lambda: forked_seqs(log),
        lambda: load_session_state(log),
        lambda: log.seal(6, closing=True),
        lambda: list_conversations(store, USER, 10),
    ):
        try:
            value = await reading()
        except StoreError as error:
            check_error(error)
            continue
        if isinstance(value, State):
            build_status(builders.CONVERSATION, value, 0).model_dump_json()


_WRITTEN: dict[str, bytes] = {}


async def _write() -> None:
    store = MemoryStore()
    log = EventLog(store, USER, builders.CONVERSATION)
    events: list[AnyEvent] = [
        builders.opened_event(),
        builders.spec_event(),
        builders.prompt(),
        builders.user(),
    ]
    events += [builders.agent(), builders.status_event("closed")]
    await log.append(events, base=0, origin=builders.ORIGIN)
    await log.seal(6, closing=True)
    _WRITTEN.update(store.objects)


def stored_objects() -> tuple[bytes, ...]:
    fork = Fork(user_id=USER, conversation_id=str(uuid.UUID(int=2)), at=2, sha="0" * 32).body()
    record = ResponseRecord(
        origin=builders.ORIGIN, completion=builders.completion(words="hi")
    ).body()
    spec = Agent(model=ModelSpec(name="m"))
    bodies = (
        fork,
        State(next_seq=3, spec=spec).model_dump_json().encode(),
        b'{"sentence":"It is so.","end":6,"at":"2026-03-01T09:00:00.000000"}',
        b'{"first":6,"shas":[]}\n',
        record,
        b'{"first":0,"sizes":[2],"shas":["a"]}\n{}\n',
        json.dumps({"user_id": USER, "at": 2}).encode(),
        builders.entries([builders.user()], 1)[0].body,
        b"",
        b"{}",
        b"1",
        b'{"a":1}',
    )
    return tuple(bytes([at]) + body for at, body in enumerate(bodies))


def build_keys(data: bytes) -> None:
    """Any ids: an error, or a key that is where it belongs."""
    lines = data.decode(errors="surrogateescape").split("\n")
    user, conversation, name, number = (*lines, *"   7")[:4]
    seq = int(number[:9]) if number[:9].isdecimal() else -len(number)
    for key in (
        keys.user_state_prefix(user) + "a",
        keys.conversation_prefix(user, conversation) + keys.event_key(conversation, seq),
        keys.conversation_prefix(user, conversation) + keys.response_key(seq),
        keys.conversation_prefix(user, conversation) + keys.segment_key(seq, seq + 1),
    ):
        parts = key.split("/")
        assert parts[:2] == ["users", user]
        assert len(parts) == (4 if parts[2] == "state" else 6), key
        assert not {"", ".", ".."} & set(parts), key
        assert "\\" not in key
        assert key.isprintable()
        assert key.isascii()
        assert len(key) < 512
    assert keys.event_id(conversation, seq) != UNASSIGNED_ID
    keys.check_blob_key(name)


def read_manifest(body: bytes) -> None:
    """Read a manifest as it is, and packed: a changed packed body can hardly ever be unpacked."""
    for packed in (body, zlib.compress(body)):
        try:
            manifest = parse_manifest(packed)
        except ValueError:
            continue
        tree, places = decode_entries(manifest)
        check_tree(tree, places, RESTORE_LIMITS)
        for path in tree.keys() - {""}:
            assert not isinstance(tree[path], File | Folder) or not path.startswith("/")
        again = decode_entries(parse_manifest(encode_manifest(tree, places)))
        assert again[0] == tree


def _manifest() -> bytes:
    tree: Tree = {
        "": Folder(0o755, 1),
        "a b": Folder(0o755, 2),
        "a b/é\udcff": File(0o644, 3, 5, ("a" * 64,)),
        "empty": File(0o644, 3, 0, ()),
    }
    pack = f"{PREFIX}workspace/packs/{'b' * 64}"
    return encode_manifest(tree, {"a" * 64: Location(pack, 0, 5)})


def _ids() -> bytes:
    return f"{USER}@example.org\n{builders.CONVERSATION}\nblobs/{'a' * 64}\n000007".encode()


STORE_TARGETS = (
    Target("entry", read_entry, EVENTS),
    Target("store", read_store, stored_objects(), growth=400),
    Target(
        "keys", build_keys, (_ids(), b"..\n..\n..\n-1", b"a/b\n\nblobs/..\n1000000"), (ValueError,)
    ),
    Target("manifest", read_manifest, (zlib.decompress(_manifest()), _manifest()), (ValueError,)),
)
