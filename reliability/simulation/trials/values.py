"""The session state: calls of tools change values that conversations, users and all share."""

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from perdure.activities.support.inbox_events import state_update
from perdure.events.entry import Origin
from perdure.events.observations import ThinkObservation
from perdure.events.tools import AgentErrorEvent, ObservationEvent
from perdure.storage.errors import StoreUnavailable
from perdure.storage.log.event_log import EventLog
from perdure.tools.state import CommitConflict, SessionState
from reliability.simulation.store import Access
from reliability.simulation.trials.trial import Trial
from reliability.simulation.trials.value_laws import Call, ValueLaws
from reliability.simulation.world import NOW

USERS = ("ann", "ann", "bob")
"""The user of each conversation."""

ADDED = ("user:count", "app:count")
SET = ("user:text", "app:text")
OWN = ("mine", "other")


@dataclass
class Tools:
    """The resources with which a process calls tools."""

    store: Access
    state: type[SessionState]

    def log(self, conversation: int) -> EventLog:
        return EventLog(self.store, USERS[conversation], conversation_id(conversation))

    async def read(self, conversation: int) -> dict[str, Any]:
        return await self.state(self.log(conversation), "reader").all()

    async def call(self, call: Call, base: int) -> ObservationEvent | AgentErrorEvent:
        """Make a call, record its result as `activities/tool.py` does; return the stored one."""
        log = self.log(call.conversation)
        answer = await self._make(call, log)
        origin = Origin(run="run", activity=call.id)
        while True:  # `await_store` waits as patiently
            try:
                entries = await log.append([answer], base=base, origin=origin)
            except StoreUnavailable:
                await asyncio.sleep(1.0)
                continue
            stored = entries[-1].event
            assert isinstance(stored, ObservationEvent | AgentErrorEvent), "it is what was appended"
            return stored

    async def _make(self, call: Call, log: EventLog) -> ObservationEvent | AgentErrorEvent:
        fields = {"action_id": call.id, "tool_name": "note", "tool_call_id": call.id}
        state = self.state(log, call.id, may_write_app=True)
        for key in call.added:
            await state.update(key, lambda count: (count or 0) + 1)
        for key in call.set:
            # The value tells which one the call has read: it must still be there.
            await state.set(key, {"by": call.id, "after": (await state.get(key, {})).get("by")})
        for key in call.deleted:
            await state.delete(key)
        try:
            changes = await state.commit(lambda value: value)
        except CommitConflict as error:
            written = error.written or None
            return AgentErrorEvent(
                timestamp=NOW,
                **fields,
                error=str(error),
                classification="tool_raised",
                state=written,
            )
        return ObservationEvent(
            timestamp=NOW, **fields, observation=ThinkObservation(), state=changes
        )


class ValueTrial(Trial[Tools]):
    """Three conversations of two users, whose calls change the same values."""

    kind = "state"
    part = SessionState
    written_once = ("/events/",)

    def make_resources(self, store: Access) -> Tools:
        return Tools(store, self.part)

    async def act(self) -> None:
        self.calls: list[Call] = []
        dice = self.loop.random
        for number, user in enumerate(USERS):
            log = EventLog(Access(self.bucket, 0.0), user, conversation_id(number))
            opened = state_update(NOW, "opened", {"run_id": "run"})
            await log.append([opened], base=0, origin=Origin(run="run", activity="opening"))
        conversations = [0, 1, 2] if dice.random() < 0.7 else [0, 1]
        await asyncio.gather(*(self._converse(it, dice.choice((1, 2, 3))) for it in conversations))

    async def _converse(self, conversation: int, calls: int) -> None:
        for number in range(calls):
            await asyncio.sleep(self.loop.delay() * 2)
            call = self._make_call(conversation, number)
            make = partial(Tools.call, call=call, base=number + 1)
            call.answer = await self.crew.complete(call.id, make)
            self.calls.append(call)

    def _make_call(self, conversation: int, number: int) -> Call:
        dice = self.loop.random
        call = Call(f"call-{conversation}.{number}", conversation, USERS[conversation])
        call.added = dice.sample(ADDED, dice.choice((0, 1, 1)))
        call.set = [dice.choice(OWN), *dice.sample(SET, dice.choice((0, 1, 1, 2)))]
        call.deleted = [dice.choice(OWN)] if dice.random() < 0.2 else []
        return call

    def check(self) -> None:
        laws = ValueLaws(self.bucket, self.calls)
        laws.check()
        for conversation in {call.conversation for call in self.calls}:
            read: Any = partial(Tools.read, conversation=conversation)
            laws.check_values(conversation, USERS[conversation], self.read_calmly(read))


def conversation_id(number: int) -> str:
    return str(UUID(int=number + 1))
