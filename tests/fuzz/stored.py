"""What lies in a store, with any bytes in its place."""

import asyncio
import json
import uuid
import zlib
from pathlib import Path

from agent.evolve import fold
from agent.spec import ModelSpec, Spec
from agent.start import snapshot
from agent.state import State
from client.converter import CONVERTER
from events.base import UNPLACED
from events.digest import Digest
from events.entry import checked, entry, entry_from
from events.event import AnyEvent
from events.projection import digest
from storage import keys
from storage.conversations import conversations
from storage.errors import StoreError
from storage.fork import forks_of, marked
from storage.lineage import Fork
from storage.log import EventLog
from storage.record import Record
from storage.scopes import session_state
from storage.sealing import seal
from storage.snapshots.load import LIMITS
from storage.snapshots.manifest import entries_of, parsed, to_body
from storage.snapshots.tree import File, Folder, Place, Tree, check
from storage.state import legible_state, state_of
from storage.trouble import kept_trouble
from tests import builders
from tests.fuzz.watch import Target, told
from tests.storage.memory import MemoryStore

GOLDEN = Path(__file__).parents[1] / "golden" / "events"
SLOT = 7
USER = "ada"

EVENTS = (
    *(path.read_bytes() for path in sorted(GOLDEN.iterdir())),
    *(one.body for one in builders.entries(builders.ONE_OF_EACH)),
    checked(builders.entries(builders.ONE_OF_EACH, SLOT)[0], "0" * 32).body,
)

MOST_TOLD = 4_096
"""Bytes of a digest, whatever the event; that of a spec is as long as the spec."""


def read_entry(body: bytes) -> None:
    try:
        found = entry_from(SLOT, body)
    except ValueError:
        return
    told = digest(found)
    [written] = CONVERTER.payload_converter.to_payloads([told])
    [back] = CONVERTER.payload_converter.from_payloads([written], [Digest])
    assert repr(back) == repr(told), "what Temporal is given comes back"
    assert len(written.data) < MOST_TOLD + (told.key == "spec") * 2 * len(body)
    again = entry(SLOT, found.event, found.origin, found.usage, found.files)
    assert digest(entry_from(SLOT, again.body)).fingerprint == told.fingerprint
    sealed = checked(again, "0" * 32)
    assert entry_from(SLOT, sealed.body).event == entry_from(SLOT, again.body).event
    if told.key != "spec":  # one of a newer version is refused
        fold(State(next_seq=SLOT), [told])


PREFIX = keys.conversation_prefix(USER, builders.CONVERSATION)
PLACES = (
    keys.FORK,
    keys.STATE,
    keys.TROUBLE,
    keys.TAIL,
    keys.response_key(1),
    keys.segment_key(0, 6),
    keys.fork_mark(str(uuid.UUID(int=1))),
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
        log.gap,
        lambda: log.read(0, 10),
        lambda: log.recorded(1),
        lambda: state_of(log),
        lambda: legible_state(log),
        lambda: kept_trouble(log, 6),
        lambda: forks_of(log),
        lambda: marked(log),
        lambda: session_state(log),
        lambda: seal(log, 6, closing=True),
        lambda: conversations(store, USER, 10),
    ):
        try:
            found = await reading()
        except StoreError as error:
            told(error)
            continue
        if isinstance(found, State):
            snapshot(builders.CONVERSATION, found, 0).model_dump_json()


_WRITTEN: dict[str, bytes] = {}


async def _write() -> None:
    store = MemoryStore()
    log = EventLog(store, USER, builders.CONVERSATION)
    events: list[AnyEvent] = [
        builders.opened(),
        builders.configured(),
        builders.prompt(),
        builders.user(),
    ]
    events += [builders.agent(), builders.status("closed")]
    await log.append(events, base=0, origin=builders.ORIGIN)
    await seal(log, 6, closing=True)
    _WRITTEN.update(store.objects)


def _stored() -> tuple[bytes, ...]:
    fork = Fork(user_id=USER, conversation_id=str(uuid.UUID(int=2)), at=2, sha="0" * 32).body()
    record = Record(origin=builders.ORIGIN, completion=builders.completion(words="hi")).body()
    spec = Spec(model=ModelSpec(name="m"))
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
    assert keys.event_id(conversation, seq) != UNPLACED
    keys.check_blob_key(name)


def read_manifest(body: bytes) -> None:
    """As it is, and packed: a changed body alone is hardly ever one that can be unpacked."""
    for packed in (body, zlib.compress(body)):
        try:
            manifest = parsed(packed)
        except ValueError:
            continue
        tree, places = entries_of(manifest)
        check(tree, places, LIMITS)
        for path in tree.keys() - {""}:
            assert not isinstance(tree[path], File | Folder) or not path.startswith("/")
        again = entries_of(parsed(to_body(tree, places)))
        assert again[0] == tree


def _manifest() -> bytes:
    tree: Tree = {
        "": Folder(0o755, 1),
        "a b": Folder(0o755, 2),
        "a b/é\udcff": File(0o644, 3, 5, ("a" * 64,)),
        "empty": File(0o644, 3, 0, ()),
    }
    pack = f"{PREFIX}workspace/packs/{'b' * 64}"
    return to_body(tree, {"a" * 64: Place(pack, 0, 5)})


def _ids() -> bytes:
    return f"{USER}@example.org\n{builders.CONVERSATION}\nblobs/{'a' * 64}\n000007".encode()


STORED = (
    Target("entry", read_entry, EVENTS),
    Target("store", read_store, _stored(), growth=400),
    Target(
        "keys", build_keys, (_ids(), b"..\n..\n..\n-1", b"a/b\n\nblobs/..\n1000000"), (ValueError,)
    ),
    Target("manifest", read_manifest, (zlib.decompress(_manifest()), _manifest()), (ValueError,)),
)
