"""The laws of the session state: of the values that are shared, and of those in a log."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from uuid import UUID

from perdure.events.tools import AgentErrorEvent, ObservationEvent
from perdure.storage.keys import conversation_prefix
from reliability.simulation.bucket import Bucket
from reliability.simulation.laws import require

NO_VALUE: dict[str, Any] = {"value": None, "writes": []}


@dataclass
class Call:
    """A call of a tool: the keys that it adds one to, sets and deletes, and its recorded answer."""

    id: str
    conversation: int
    user: str
    added: list[str] = field(default_factory=list)
    set: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    answer: ObservationEvent | AgentErrorEvent | None = None

    @property
    def shared(self) -> list[str]:
        """The keys of the shared values that it changes."""
        return [key for key in (*self.added, *self.set) if ":" in key]


class ValueLaws:
    """The laws of shared values, by all that their objects have held, and of a log's own."""

    def __init__(self, bucket: Bucket, calls: list[Call]) -> None:
        self.bucket = bucket
        self.calls = calls
        self.versions: dict[str, list[dict[str, Any]]] = {
            key: [NO_VALUE, *(json.loads(body or b"") for body in bodies)]
            for key, bodies in bucket.history.items()
            if "/state/" in key
        }
        """Every version of each object, in order, from none on."""

    def check(self) -> None:
        for versions in self.versions.values():
            for before, after in pairwise(versions):
                self.check_version(before, after)
            self.check_once(versions)
        for call in self.calls:
            self.check_answer(call)

    def check_version(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        """A version names the writes before it, and adds one that has seen the value before."""
        require(after["writes"][:-1] == before["writes"], "a version forgot a write, or has two")
        write = after["writes"][-1]
        if write["id"].startswith("refused "):
            require(after["value"] == before["value"], f"{write['id']} has changed a value")
            return
        require(write["before"] == before["value"], f"{write} follows {before['value']}")
        require(write["value"] == after["value"], f"{write} made {after['value']}")
        if isinstance(write["value"], dict) and write["value"].get("by") == write["id"]:
            read, there = write["value"]["after"], (before["value"] or {}).get("by")
            require(read == there, f"{write['id']} has read {read}, and took the place of {there}")

    def check_once(self, versions: list[dict[str, Any]]) -> None:
        """A call writes a value once, and a number counts the calls that added to it."""
        names = [write["id"] for write in versions[-1]["writes"]]
        ids = [name for name in names if not name.startswith("refused ")]
        require(len(ids) == len(set(ids)), f"a call has written twice: {ids}")
        count = versions[-1]["value"]
        if isinstance(count, int):
            require(count == len(ids), f"{len(ids)} calls have added one, which makes {count}")

    def check_answer(self, call: Call) -> None:
        """A call has written what the log says it has written, and nothing else."""
        assert call.answer is not None, "a call that is known has an answer"
        recorded = call.answer.state or {}
        if isinstance(call.answer, ObservationEvent):
            missing = set(call.shared) - set(recorded)
            require(not missing, f"{call.id} succeeded, and did not write {missing}")
        for key in call.shared:
            written = [write["value"] for write in self._writes(call, key)]
            due = [recorded[key]] if key in recorded else []
            require(written == due, f"{call.id} has written {written} to {key}; the log says {due}")

    def check_values(self, conversation: int, user: str, values: dict[str, Any]) -> None:
        """A fresh process sees the newest value of each key."""
        due: dict[str, Any] = {}
        for event in self._events(conversation, user):
            due |= {key: new for key, new in (event["state"] or {}).items() if ":" not in key}
        for scope, folder in (("user", f"users/{user}/state/"), ("app", "app/state/")):
            for name, body in self.bucket.under(folder):
                due[f"{scope}:{name.removesuffix('.json')}"] = json.loads(body)["value"]
        due = {key: value for key, value in due.items() if value is not None}
        require(values == due, f"the values of {conversation} are {values}, not {due}")

    def _writes(self, call: Call, key: str) -> list[dict[str, Any]]:
        scope, _, name = key.partition(":")
        folder = f"users/{call.user}/state" if scope == "user" else "app/state"
        versions = self.versions.get(f"{folder}/{name}.json", [NO_VALUE])
        return [write for write in versions[-1]["writes"] if write["id"] == call.id]

    def _events(self, conversation: int, user: str) -> Iterator[dict[str, Any]]:
        prefix = conversation_prefix(user, str(UUID(int=conversation + 1)))
        for _, body in self.bucket.under(f"{prefix}events/"):
            yield {"state": None, **json.loads(body)}
