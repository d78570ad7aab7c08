"""Workflow runs of one conversation, as `workflows/conversation.py` has them, and readers."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.decide import decide
from agent.evolve import fold
from agent.inbox import (
    Failed,
    InterruptAsked,
    Item,
    Noted,
    PauseAsked,
    ResumeAsked,
    Said,
)
from agent.state import State, knows, lost
from agent.steps import Act, Open, Record, Save, Step, Stop, Task
from events.digest import Digest
from tests.simulation.scheduler import Loop
from tests.simulation.temporal import StepFailed, Temporal
from tests.simulation.world import SPEC
from workflows.failures import FINAL, VITAL

USER = "somebody"


@dataclass
class Known:
    """What workflows were told, and can count on for ever."""

    slots: dict[int, str] = field(default_factory=dict)
    """The hash of the bytes in a slot, as a step first came back with it."""
    contradicted: list[str] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    """The ids of the messages that a step was acknowledged to have recorded."""
    chains: list[list[str]] = field(default_factory=list)
    """Runs that hand over to each other, in order: only the first of them opens the log."""


class Run:
    """One workflow run; `state` is handed to it by the run before it, or read from the log."""

    def __init__(
        self, temporal: Temporal, conversation_id: str, name: str, known: Known, turns: int
    ) -> None:
        self.temporal = temporal
        self.loop: Loop = temporal.loop
        self.conversation_id = conversation_id
        self.name = name
        self.known = known
        self.turns = turns
        self.state = State()
        self.inbox: list[Item] = []
        self.steps = 0
        self.ended = ""
        self.chain = [name]
        known.chains.append(self.chain)

    async def converse(self) -> None:
        """Until all turns were taken, or until this run must not go on."""
        try:
            await self._open()
            while await self._goes_on():
                steps = decide(self.state, self.inbox)
                taken = [self.loop.create_task(self._take(step)) for step in steps]
                for ended in await asyncio.gather(*taken, return_exceptions=True):
                    if isinstance(ended, BaseException):
                        raise ended
                if self.loop.chance(0.05):
                    self._hand_over()
            await self._do(Stop(state=self.state))
        except StepFailed as error:
            self.temporal.happened[f"run ended: {error.kind}"] += 1
            self.loop.tell(f"{self.name} ends: {error}")
            self.ended = error.kind

    async def _open(self) -> None:
        # Somebody opens what may be new: whoever is first begins it.
        self.inbox.append(self._message())
        items = tuple(self.inbox)
        self.state = await self._do(Open(spec=SPEC, items=items))
        self.known.states.append(self.state)
        self._acknowledge(items)
        self.inbox = [item for item in self.inbox[len(items) :] if not knows(self.state, item)]

    async def _goes_on(self) -> bool:
        """Whether there is something to do: somebody speaks up when there is not."""
        if self.loop.chance(0.08):
            self.inbox.append(self._interruption())
        while not self.inbox and not decide(self.state, self.inbox):
            if self.loop.chance(0.3):
                await self._do(Save(state=self.state))
            if self.turns <= 0:
                return False
            self.turns -= 1
            if self.state.status == "paused":
                self.inbox.append(ResumeAsked())
            self.inbox.append(self._message())
        return True

    def _message(self) -> Said:
        name = f"{self.name}-{len(self.known.said)}-{self.loop.dice.randrange(10**6)}"
        return Said(text=name, message_id=name)

    def _interruption(self) -> Item:
        kind = self.loop.dice.randrange(4)
        if kind == 0:
            return Noted(key="title", value=f"title by {self.name}")
        return (PauseAsked(), InterruptAsked(), ResumeAsked())[kind - 1]

    async def _take(self, step: Step) -> None:
        try:
            digests: list[Digest] = await self._do(step)
        except StepFailed as error:
            self._fail(step, error)
            return
        self._note(digests)
        self.state = fold(self.state, digests)
        self.known.states.append(self.state)
        if isinstance(step, Record):
            self._acknowledge(self.inbox[: step.taken])
            del self.inbox[: step.taken]

    def _fail(self, step: Step, error: StepFailed) -> None:
        if error.kind in FINAL or isinstance(step, VITAL):
            raise error
        if isinstance(step, Act):
            self.state = lost(self.state, step.action, "Its worker was lost.")
        elif error.kind != "cancelled":
            self.inbox.append(Failed(code="internal", detail=error.kind))
        else:
            self.inbox.append(InterruptAsked())

    def _hand_over(self) -> None:
        """Continue as new: the next run has another id, and goes on where this one was."""
        self.name = f"{self.chain[0]}+{len(self.chain)}"
        self.chain.append(self.name)
        self.steps = 0
        self.temporal.happened["handed over"] += 1

    async def _do(self, step: Step | Open) -> Any:
        self.steps += 1
        task = Task[Any](
            conversation_id=self.conversation_id,
            user_id=USER,
            base=self.state.next_seq,
            step=step,
        )
        return await self.temporal.done(self.name, self.steps, task)

    def _acknowledge(self, items: Sequence[Item]) -> None:
        self.known.said += [
            item.message_id for item in items if isinstance(item, Said) and item.message_id
        ]

    def _note(self, digests: Sequence[Digest]) -> None:
        for one in digests:
            if self.known.slots.setdefault(one.seq, one.sha) != one.sha:
                self.known.contradicted.append(f"slot {one.seq}, as {self.name} was told")
