"""A discussion: agents, two runs of its workflow, and readers, who all use one log."""

import asyncio
from collections.abc import Awaitable, Sequence
from functools import lru_cache, partial
from typing import Any

from perdure.agent.discussion.log_state import LogState
from perdure.agent.discussion.pruning import BeforeSequence, ByCount, ByType
from perdure.errors import Forbidden
from perdure.events.discussion import SYSTEM, DiscussionEvent, system_content
from perdure.events.entry import Origin, add_checksum, make_entry
from perdure.events.event import UnknownEvent
from perdure.storage.discussions.archive import Pruning
from perdure.storage.discussions.service import EventLogService
from perdure.storage.discussions.shared_log import SharedLog
from perdure.storage.errors import StoreUnavailable
from perdure.storage.keys import shared_event_key
from reliability.simulation.conversation import USER
from reliability.simulation.store import Access
from reliability.simulation.trials.discussion_laws import (
    AGENTS,
    PREFIX,
    SESSION,
    DiscussionLaws,
    Known,
    Reading,
)
from reliability.simulation.trials.trial import Trial

NOW = "2025-01-01T00:00:00.000Z"
FORMER_EVENTS = 45
"""Events that some logs begin with, so that a state is saved behind them."""


class Service(EventLogService):
    """The service, with a log of the kind that is on trial."""

    def __init__(self, store: Access, kind: type[SharedLog]) -> None:
        super().__init__(store, USER)
        self.log = kind(store, USER, SESSION)

    def _log(self, session_id: str) -> SharedLog:
        assert session_id == SESSION, "there is one session"
        return self.log


class DiscussionTrial(Trial[Service]):
    """Agents write through the service, runs write steps, and the log is pruned meanwhile."""

    kind = "discussion"
    part = SharedLog
    written_once = ("/events/", "/archive/", "/ids/")

    def make_resources(self, store: Access) -> Service:
        return Service(store, self.part)

    async def act(self) -> None:
        self.known = Known()
        if self.loop.chance(0.1):
            for number, body in enumerate(former_events(), 1):
                self.bucket.put(PREFIX + shared_event_key(number), body, once=True)
        await self._append(
            "opening", "SYSTEM", SYSTEM, system_content("OPENED", agents=list(AGENTS))
        )
        dice = self.loop.random
        await asyncio.gather(
            *(self._speak(name) for name in dice.sample(AGENTS, dice.choice((2, 3)))),
            *(self._run(dice.choice((1, 2))) for _ in range(dice.choice((1, 2, 2)))),
            self._prune(dice.choice((0, 1, 1, 2))),
            *(self._read(dice.choice((1, 2))) for _ in range(dice.choice((0, 1, 1, 2)))),
        )

    async def _append(self, name: str, *event: Any) -> None:
        def append(service: Service) -> Awaitable[DiscussionEvent]:
            return service.append_event(SESSION, *event, event_id=name, timestamp=NOW)

        self.known.events.append(await self.crew.complete(name, append))

    async def _speak(self, agent: str) -> None:
        """Write events of one agent; two of its programs say something for each grant."""
        for nth in range(self.loop.random.choice((1, 1, 2))):
            await asyncio.sleep(self.loop.delay() * 4)
            if self.loop.chance(0.4):
                grant = system_content("GRANT", speaker=agent)
                await self._append(f"{agent}-{nth}-grant", "SYSTEM", SYSTEM, grant)
                await asyncio.gather(*(self._contend(f"{agent}-{nth}-{it}", agent) for it in "ab"))
            else:
                type_ = self.loop.random.choice(("INTENT", "VOTE"))
                await self._append(f"{agent}-{nth}", type_, agent, {"urgency": nth})

    async def _contend(self, name: str, agent: str) -> None:
        try:
            await self._append(name, "SPEECH", agent, "I say it.")
        except Forbidden:
            self.loop.record(f"{name} is refused")
            self.happened["refused"] += 1

    async def _run(self, steps: int) -> None:
        """Record steps as a workflow does; another run of it records the same ones."""
        after = 0
        for number in range(steps):
            await asyncio.sleep(self.loop.delay() * 4)
            names = [f"step-{number}-{nth}" for nth in range(1 + number % 2)]
            self.known.steps[f"step-{number}"] = names
            events = await self.crew.complete(
                f"step-{number}", partial(record_step, names=names, after=after)
            )
            self.known.events += events
            after = events[-1].sequence

    async def _prune(self, times: int) -> None:
        for nth in range(times):
            await asyncio.sleep(self.loop.delay() * 10)
            policy = self.loop.random.choice(
                (
                    ByCount(keep=3),
                    ByType(keep_types=("SPEECH", "SYSTEM")),
                    BeforeSequence(sequence=4),
                )
            )

            async def prune(service: Service, policy: Any = policy) -> Pruning | None:
                return await service.prune_events(SESSION, policy)

            pruning = await self.crew.complete(f"pruning {nth}", prune)
            self.known.prunings += [pruning] if pruning else []

    async def _read(self, times: int) -> None:
        """Read as often as the store answers, from a process that keeps its log."""
        service = self.make_resources(Access(self.bucket, patience=0.0))
        for _ in range(times):
            await asyncio.sleep(self.loop.delay() * 8)
            written = {event.sequence for event in self.known.events}
            pruned = self.known.pruned()
            try:
                events = await service.get_events_after_sequence(SESSION, 0, 100)
            except StoreUnavailable:
                continue
            self.known.readings.append(Reading(events, written, pruned))

    def check(self) -> None:
        def refresh(service: Service) -> Awaitable[LogState]:
            return service.log.refresh()

        laws = DiscussionLaws(self.bucket, self.known)
        laws.check()
        laws.check_state(self.read_calmly(refresh))


async def record_step(service: Service, names: Sequence[str], after: int) -> list[DiscussionEvent]:
    """Write the events of a step as `activities/discussion/steps.py` does."""
    events: list[DiscussionEvent] = []
    for name in names:
        event = DiscussionEvent(
            event_id=name,
            type="SYSTEM",
            speaker=SYSTEM,
            content=system_content("NOTED", step=name),
            timestamp=NOW,
            session_id=SESSION,
            sequence=1,
        )
        events.append(await service.log.append(event, events[-1].sequence if events else after))
    return events


@lru_cache(maxsize=1)
def former_events() -> list[bytes]:
    """Return the bodies of the events that a log begins with."""
    bodies: list[bytes] = []
    sha = ""
    for number in range(1, FORMER_EVENTS + 1):
        raw = {
            "kind": "DiscussionEvent",
            "eventId": f"former-{number}",
            "type": "VOTE",
            "speaker": "ann",
            "content": "yes",
            "timestamp": NOW,
            "sessionId": SESSION,
            "sequence": number,
        }
        event = UnknownEvent(kind="DiscussionEvent", raw=raw)
        origin = Origin(run=SESSION, activity=f"former-{number}")
        entry = add_checksum(make_entry(number, event, origin), sha)
        bodies.append(entry.body)
        sha = entry.sha
    return bodies
