"""Workflow runs of one conversation, as `workflows/conversation.py` has them, and readers."""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from perdure.agent.loop.decide import decide
from perdure.agent.loop.evolve import fold
from perdure.agent.loop.inbox import (
    Answer,
    InboxItem,
    InterruptRequest,
    PauseRequest,
    ResumeRequest,
    Signal,
    StateNote,
    TurnFailure,
    UserMessage,
)
from perdure.agent.loop.state import (
    WAITING_STATUSES,
    RunNotes,
    State,
    is_recorded,
    note_lost_call,
    update_notes,
)
from perdure.agent.loop.steps import Act, Close, Open, Record, SaveState, Step, Task
from perdure.agent.loop.wait_steps import find_waiting_action
from perdure.events.summary import EventSummary
from perdure.workflows.step_failures import FATAL_ERROR_TYPES, REQUIRED_STEPS
from perdure.workflows.wait_requests import is_repeated
from reliability.simulation.scheduler import SimulatedLoop
from reliability.simulation.temporal import StepFailed, TaskLost, Temporal
from reliability.simulation.world import SPEC

USER = "somebody"


@dataclass
class WorkflowKnowledge:
    """The acknowledgements that workflows got, and can count on for ever."""

    slots: dict[int, str] = field(default_factory=dict)
    """The hash of the bytes in a slot, as a step first came back with it."""
    contradicted: list[str] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    message_ids: list[str] = field(default_factory=list)
    """The ids of the messages that a step was acknowledged to have recorded."""
    signal_ids: list[str] = field(default_factory=list)
    """The ids of the signals that a step was acknowledged to have recorded."""
    chains: list[list[str]] = field(default_factory=list)
    """Runs that hand over to each other, in order: only the first of them opens the log."""


class WorkflowRun:
    """A workflow run; `state` comes from the run before it, or from the log."""

    def __init__(
        self,
        temporal: Temporal,
        conversation_id: str,
        name: str,
        known: WorkflowKnowledge,
        turns: int,
    ) -> None:
        self.temporal = temporal
        self.loop: SimulatedLoop = temporal.loop
        self.conversation_id = conversation_id
        self.name = name
        self.known = known
        self.turns = turns
        self.state = State()
        self.notes = RunNotes()
        self.inbox: list[InboxItem] = []
        self.steps = 0
        self.ended = ""
        self.chain = [name]
        known.chains.append(self.chain)

    async def converse(self) -> None:
        """Until all turns were taken, or until this run must not go on."""
        try:
            await self._open()
            while await self._has_work():
                await self._run_round(decide(self.state, self.inbox, notes=self.notes))
                if self.loop.chance(0.05):
                    self._hand_over()
            await self._save(Close(state=self.state))
        except StepFailed as error:
            self.temporal.happened[f"run ended: {error.kind}"] += 1
            self.loop.record(f"{self.name} ends: {error}")
            self.ended = error.kind

    async def _open(self) -> None:
        # Somebody opens what may be new: whoever is first begins it.
        self.inbox.append(self._message())
        items = tuple(self.inbox)
        self.state = await self._do(Open(spec=SPEC, items=items))
        self.known.states.append(self.state)
        self._acknowledge(items)
        self.inbox = [
            item for item in self.inbox[len(items) :] if not is_recorded(self.state, item)
        ]

    async def _has_work(self) -> bool:
        """Tell whether there is something to do; a user speaks up when there is not."""
        if self.loop.chance(0.08):
            self.inbox.append(self._interruption())
        while not self.inbox and not decide(self.state, self.inbox, notes=self.notes):
            if self.loop.chance(0.3):
                await self._save(SaveState(state=self.state))
            if self.turns <= 0:
                return False
            if self.state.status in WAITING_STATUSES and self.loop.chance(0.8):
                self.inbox.append(self._wake())
                continue
            self.turns -= 1
            if self.state.status == "paused":
                self.inbox.append(ResumeRequest())
            self.inbox.append(self._message())
        return True

    def _wake(self) -> InboxItem:
        """Return the item that ends the wait of an agent: the answer, or a signal."""
        waiting = find_waiting_action(self.state)
        assert waiting is not None, "a conversation that waits has an action that does"
        if self.state.status == "waiting_for_answer":
            return Answer(action=waiting.seq, text="Go.")
        return Signal(name="go", signal_id=self._new_signal_id())

    def _new_signal_id(self) -> str:
        return f"{self.name}-{self.loop.random.randrange(10**9)}"

    def _signal(self) -> Signal:
        """A signal with a new id, or with one that came before, as a sender repeats it."""
        if self.known.signal_ids and self.loop.chance(0.2):
            return Signal(name="go", signal_id=self.loop.random.choice(self.known.signal_ids))
        return Signal(name="go", signal_id=self._new_signal_id())

    def _message(self) -> UserMessage:
        name = f"{self.name}-{len(self.known.message_ids)}-{self.loop.random.randrange(10**6)}"
        return UserMessage(text=name, message_id=name)

    def _interruption(self) -> InboxItem:
        kind = self.loop.random.randrange(5)
        if kind == 4 and not is_repeated(signal := self._signal(), self.state, self.inbox):
            return signal
        if kind in (0, 4):
            return StateNote(key="title", value=f"title by {self.name}")
        return (PauseRequest(), InterruptRequest(), ResumeRequest())[kind - 1]

    async def _run_round(self, steps: Sequence[Step]) -> None:
        """Run the steps side by side; if their workflow task is lost, none of it has happened."""
        before = (self.state, self.notes, list(self.inbox), self.steps)
        local = all(isinstance(step, Act) and step.repeatable for step in steps)
        taken = [self.loop.create_task(self._run_step(step, local)) for step in steps]
        all_ended = await asyncio.gather(*taken, return_exceptions=True)
        errors = [ended for ended in all_ended if isinstance(ended, BaseException)]
        if errors and all(isinstance(error, TaskLost) for error in errors):
            self.state, self.notes, self.inbox, self.steps = before
            if self.loop.chance(0.3):  # what has come meanwhile changes what is decided
                self.inbox.append(self._interruption())
        for error in errors:
            if not isinstance(error, TaskLost):
                raise error

    async def _run_step(self, step: Step, local: bool) -> None:
        try:
            digests: list[EventSummary] = await self._do(step, local)
        except StepFailed as error:
            self._fail(step, error)
            return
        self._note(digests)
        self.state = fold(self.state, digests)
        self.notes = update_notes(self.notes, self.state, digests)
        self.known.states.append(self.state)
        if isinstance(step, Record):
            self._acknowledge(self.inbox[: step.from_inbox])
            del self.inbox[: step.from_inbox]

    def _fail(self, step: Step, error: StepFailed) -> None:
        if error.kind in FATAL_ERROR_TYPES or isinstance(step, REQUIRED_STEPS):
            raise error
        if isinstance(step, Act):
            self.notes = note_lost_call(self.notes, step.action_seq, "Its worker was lost.")
        elif error.kind != "cancelled":
            self.inbox.append(TurnFailure(code="internal", detail=error.kind))
        else:
            self.inbox.append(InterruptRequest())

    def _hand_over(self) -> None:
        """Continue as new: the next run has another id, and goes on where this one was."""
        self.name = f"{self.chain[0]}+{len(self.chain)}"
        self.chain.append(self.name)
        self.steps = 0
        self.temporal.happened["handed over"] += 1

    async def _save(self, step: SaveState | Close) -> None:
        """Save, again if its workflow task is lost."""
        while True:
            with contextlib.suppress(TaskLost):
                await self._do(step, local=True)
                return

    async def _do(self, step: Step | Open, local: bool = False) -> Any:
        task = Task[Any](
            conversation_id=self.conversation_id,
            user_id=USER,
            base=self.state.next_seq,
            step=step,
        )
        if local and self.temporal.local:
            return await self.temporal.execute_locally(self.name, task)
        self.steps += 1
        return await self.temporal.execute(self.name, str(self.steps), task)

    def _acknowledge(self, items: Sequence[InboxItem]) -> None:
        self.known.message_ids += [
            item.message_id for item in items if isinstance(item, UserMessage) and item.message_id
        ]
        self.known.signal_ids += [item.signal_id for item in items if isinstance(item, Signal)]

    def _note(self, digests: Sequence[EventSummary]) -> None:
        for digest in digests:
            if self.known.slots.setdefault(digest.seq, digest.sha) != digest.sha:
                self.known.contradicted.append(f"slot {digest.seq}, as {self.name} was told")
