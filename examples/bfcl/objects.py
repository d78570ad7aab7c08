"""The stored objects of a conversation, read without perdure's own reader."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from perdure.storage.store import Store

Objects: TypeAlias = Mapping[str, bytes]
"""Bytes by key: what a listing of the store gives."""

NAME = re.compile(r"/events/(\d{6,})_([0-9a-f-]{36})\.json$")


@dataclass(frozen=True)
class StoredEvent:
    """An event object: its key's parts and its content; `fields` is empty if unreadable."""

    key: str
    seq: int
    id: str
    fields: Mapping[str, Any]

    @property
    def kind(self) -> str:
        return str(self.fields.get("kind"))


def parse_objects(objects: Objects) -> list[StoredEvent]:
    """The event objects in order of their slots; objects with other names are left out."""
    matches = ((key, NAME.search(key)) for key in objects)
    events = [
        StoredEvent(key, int(name[1]), name[2], parse_fields(objects[key]))
        for key, name in matches
        if name
    ]
    return sorted(events, key=lambda event: (event.seq, event.key))


def recorded_response_ids(objects: Objects) -> set[str]:
    """Return the ids of the model's responses that are on record, as events or before them."""
    ids = {event.fields.get("llm_response_id") for event in parse_objects(objects)}
    records = (parse_fields(body) for key, body in objects.items() if "/responses/" in key)
    ids |= {record.get("completion", {}).get("id") for record in records}
    return {str(name) for name in ids if name is not None}


def parse_fields(body: bytes) -> Mapping[str, Any]:
    try:
        fields = json.loads(body)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


async def fetch_objects(store: Store, prefix: str) -> Objects:
    """Fetch all objects whose keys begin with `prefix`."""
    bodies: dict[str, bytes] = {}
    last = ""
    while keys := await store.list(prefix, after=last):
        last = keys[-1]
        for key in keys:
            bodies[key] = await store.read(key) or b""
    return bodies
