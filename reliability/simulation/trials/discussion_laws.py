"""The laws of the log that the agents of a discussion share."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from perdure.agent.discussion.log_state import LogState
from perdure.events.discussion import DiscussionEvent
from perdure.storage.discussions.archive import Pruning
from perdure.storage.keys import discussion_prefix
from reliability.simulation.bucket import Bucket
from reliability.simulation.conversation import USER
from reliability.simulation.laws import require

SESSION = "simulated"
AGENTS = ("ann", "bob", "cyd")
PREFIX = discussion_prefix(USER, SESSION)


@dataclass
class Reading:
    """The events that a reader saw, and what was acknowledged before it began."""

    events: list[DiscussionEvent]
    written: set[int]
    pruned: set[int]


@dataclass
class Known:
    """The answers that writers and readers got."""

    events: list[DiscussionEvent] = field(default_factory=list)
    prunings: list[Pruning] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    steps: dict[str, list[str]] = field(default_factory=dict)
    """The ids of the events of each step, in order."""

    def pruned(self) -> set[int]:
        return {number for pruning in self.prunings for number in pruning.sequences()}


class DiscussionLaws:
    """The laws of a discussion's log, read from the bucket."""

    def __init__(self, bucket: Bucket, known: Known) -> None:
        self.known = known
        self.keys = [name for name, _ in bucket.under(f"{PREFIX}events/")]
        self.bodies = [body for _, body in bucket.under(f"{PREFIX}events/")]
        self.events: list[dict[str, Any]] = [json.loads(body) for body in self.bodies]
        self.prunings: list[dict[str, Any]] = [
            json.loads(body) for _, body in bucket.under(f"{PREFIX}archive/")
        ]
        self.gone = [
            number
            for pruning in self.prunings
            for first, last in pruning["ranges"]
            for number in range(first, last + 1)
        ]

    def check(self) -> None:
        self.check_slots()
        self.check_acknowledged()
        self.check_steps()
        self.check_grants()
        self.check_prunings()
        self.check_readings()

    def check_slots(self) -> None:
        """Slots have no gaps; each event follows the one before, and no id is there twice."""
        due = [f"{number:06d}.json" for number in range(1, len(self.keys) + 1)]
        require(self.keys == due, f"the slots are {self.keys}")
        previous = ""
        for number, (event, body) in enumerate(zip(self.events, self.bodies, strict=True), 1):
            require(event["sequence"] == number, f"slot {number} holds {event['sequence']}")
            follows = event["origin"]["after"] == previous
            require(follows, f"slot {number} was written behind another event")
            previous = hashlib.sha256(body).hexdigest()[:32]
        ids = Counter(event["eventId"] for event in self.events)
        require(set(ids.values()) <= {1}, f"an event is there twice: {ids.most_common(1)}")

    def check_acknowledged(self) -> None:
        for event in self.known.events:
            there = event.sequence <= len(self.events)
            require(there, f"{event.event_id} was acknowledged, and is not there")
            self._check_same(event, "acknowledged")

    def check_steps(self) -> None:
        """The events of a step stand in its order."""
        places = {event["eventId"]: event["sequence"] for event in self.events}
        for step, names in self.known.steps.items():
            found = [places[name] for name in names]
            require(found == sorted(found), f"the events of {step} stand at {found}")

    def check_grants(self) -> None:
        """Nobody spoke without a grant of his own."""
        left: Counter[str] = Counter()
        for event in self.events:
            if event["type"] == "SPEECH":
                left[event["speaker"]] -= 1
                require(left[event["speaker"]] >= 0, f"{event['eventId']} was not granted")
            elif event["type"] == "SYSTEM" and event["content"].get("action") == "GRANT":
                left[event["content"]["details"]["speaker"]] += 1

    def check_prunings(self) -> None:
        """Prunings are numbered, follow their policies, and take no event out twice."""
        numbers = [pruning["number"] for pruning in self.prunings]
        require(numbers == list(range(1, len(numbers) + 1)), f"prunings are {numbers}")
        require(len(set(self.gone)) == len(self.gone), f"pruned twice: {self.gone}")
        known = self.known.pruned()
        require(known <= set(self.gone), "an acknowledged pruning is not there")
        for pruning in self.prunings:
            for first, last in pruning["ranges"]:
                require(last <= pruning["through"], "a pruning looked at too many events")
                self._check_policy(pruning["policy"], self.events[first - 1 : last])

    def _check_policy(self, policy: dict[str, Any], events: Sequence[dict[str, Any]]) -> None:
        for event in events:
            kept = event["type"] in policy.get("keepTypes", ())
            kept |= event["sequence"] >= policy.get("sequence", len(self.events) + 1)
            kept |= event["sequence"] > len(self.events) - policy.get("keep", 0)
            require(not kept, f"{policy} took out {event['sequence']}, which it keeps")

    def check_readings(self) -> None:
        """A reader saw all that was written before, and nothing that was pruned before."""
        for reading in self.known.readings:
            seen = [event.sequence for event in reading.events]
            require(seen == sorted(set(seen)), f"a reader saw {seen}")
            require(not reading.pruned & set(seen), f"a reader saw pruned events: {seen}")
            missed = reading.written - set(self.gone) - set(seen)
            require(not missed, f"a reader did not see {missed}")
            for event in reading.events:
                self._check_same(event, "read")

    def check_state(self, state: LogState) -> None:
        """A fresh process comes to the state that the events and prunings make."""
        visible = [(it["sequence"], it["type"]) for it in self.events]
        visible = [item for item in visible if item[0] not in self.gone]
        require(state.end == len(self.events), f"the state ends at {state.end}")
        require(list(state.visible) == visible, "other events are visible than are left")
        require(state.prunings == len(self.prunings), "the state knows other prunings")
        require(state.speakers == AGENTS, f"the speakers are {state.speakers}")
        last = hashlib.sha256(self.bodies[-1]).hexdigest()[:32]
        require(state.sha == last, "the state ends with another event")

    def _check_same(self, event: DiscussionEvent, how: str) -> None:
        stored = self.events[event.sequence - 1]
        same = {name: stored[name] for name in event.to_json()} == event.to_json()
        require(same, f"slot {event.sequence} is not what was {how}")
