"""One conversation: decide what to do, do it, take in what came of it; until it is closed."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError
from temporalio.workflow import ContinueAsNewVersioningBehavior

from agent.decide import ROOM, decide, load
from agent.evolve import fold
from agent.inbox import Item, Said, weight
from agent.spec import Spec
from agent.start import Snapshot, Start
from agent.state import State, knows, lost, uncondensed, untitled
from agent.steps import (
    Act,
    Condense,
    Delegate,
    Entitle,
    Finish,
    Open,
    Record,
    Save,
    Step,
    Stop,
)
from agent.trial import Scored
from agent.trying import trial_step, wanted
from workflows.allowances import ask
from workflows.doing import Doing
from workflows.failures import Ended, after_failure, known_of, was_wanted
from workflows.lanes import Lanes
from workflows.messages import start_of
from workflows.operators import details, search_attributes

PORTABLE = 120 * 1024
"""Bytes that may be handed over; what waits beyond that is recorded first."""

LONG = 1500
"""History events after which a run hands over to the next."""


# What it is told may make no sense, like the input that somebody typed: a workflow that fails says
# so, and the next message opens the conversation again. A mistake in the code waits for the next
# version instead.
@workflow.defn(name="Conversation", failure_exception_types=[ValueError])
class Conversation(Doing):
    """The workflow of one conversation. Its log, not its history, is what must not be lost."""

    @workflow.init
    def __init__(self, *sent: Any) -> None:
        start = self.start = start_of(sent)
        self.conversation_id = start.conversation_id
        self.user_id = start.user_id
        self.opened = start.state is not None
        self.state = start.state or State()
        self.inbox: list[Item] = list(start.inbox)
        self.saved = self.state.next_seq
        self.lanes = Lanes(start.lanes)
        self.scored: Scored | None = None
        self.shown = (self.state.status, self.state.spec_seq)
        self.working: list[asyncio.Task[None]] = []
        self.stoppable: list[asyncio.Task[Any]] = []
        self.stopping = False

    @workflow.run
    async def run(self, *sent: Any) -> Snapshot:  # noqa: ARG002 - `__init__` has it
        try:
            return await self.converse()
        except asyncio.CancelledError:  # of the workflow: whatever runs is stopped, and kept
            self.close()
            return await self.converse()

    async def converse(self) -> Snapshot:
        await self.at_work(Open(spec=self.start.spec) if not self.opened else None)
        while True:
            while await self.goes_on():
                if not await self.may_go_on():
                    continue
                await self.at_work(*self.next_steps(self.seconds_left()))
                if self.is_long():
                    workflow.continue_as_new(
                        self.handed_over(),
                        initial_versioning_behavior=ContinueAsNewVersioningBehavior.AUTO_UPGRADE,
                    )
            await self.end()
            await workflow.wait_condition(lambda: bool(self.inbox) or self.nobody_waits())
            if not self.inbox:
                return self.status().model_copy(update={"scored": self.scored})

    async def end(self) -> None:
        """Keep what is to be kept of a conversation that ends, for now or for good."""
        trial = self.start.trial
        if trial is not None:
            self.scored = await self.do(Finish(trial=trial, state=self.state), Scored)
        elif self.saved != self.state.next_seq:
            await self.at_work(Stop(state=self.state))
        self.saved = self.state.next_seq

    def next_steps(self, seconds_left: float | None = None) -> Sequence[Step]:
        steps = decide(self.state, self.inbox, seconds_left)
        if steps or self.start.trial is None:
            return steps
        step = trial_step(self.start.trial, self.state)
        return (step,) if step else ()

    async def may_go_on(self) -> bool:
        """Whether the next steps are within what may be spent; else more of it is waited for."""
        trial = self.start.trial
        if trial is None or self.inbox:
            return True
        short_of = wanted(trial, self.state, self.next_steps(self.seconds_left()))
        if short_of is None:
            return True
        await ask(self, short_of, self.seconds_left())
        return False

    async def goes_on(self) -> bool:
        """Wait until there is something to do; false once there never will be."""
        if self.next_steps():
            return True
        if self.state.status == "closed" or self.is_done():
            return False
        if self.saved != self.state.next_seq:
            self.saved = self.state.next_seq
            await self.at_work(Save(state=self.state))
        return await self.woken()

    def is_done(self) -> bool:
        """Whether this was one turn on behalf of another, or of a batch, and it is over."""
        waits = ("running", "paused", "waiting_for_confirmation")
        begun = self.state.turn or (self.start.trial and self.opened)
        on_behalf = self.start.parent or self.start.trial
        return bool(on_behalf and begun) and self.state.status not in waits

    async def woken(self) -> bool:
        if self.start.trial is not None:  # its batch waits for it, however long it is paused
            await workflow.wait_condition(lambda: bool(self.inbox))
            return True
        patience = timedelta(seconds=self.spec.idle_timeout)
        try:
            await workflow.wait_condition(lambda: bool(self.inbox), timeout=patience)
        except TimeoutError:
            return bool(self.inbox)
        return True

    async def at_work(self, *steps: Step | Open | None) -> None:
        """Do the steps, side by side; a deadline that passes meanwhile stops them.

        A cancelled workflow comes back here: what was being done then is waited for first.
        """
        if not self.working:
            self.stopping = False
            self.working = [asyncio.create_task(self.take(step)) for step in steps if step]
        left = self.seconds_left()
        if left is not None and left > 0:
            try:
                await workflow.wait_condition(self.is_idle, timeout=timedelta(seconds=left))
            except TimeoutError:
                self.stop()
        await workflow.wait_condition(self.is_idle)
        done, self.working = self.working, []
        for task in done:
            task.result()
        self.show()

    def is_idle(self) -> bool:
        return all(task.done() for task in self.working)

    async def take(self, step: Step | Open) -> None:
        """Do the step and take in what came of it, or that nothing came of it."""
        if isinstance(step, Open):
            await self.open(step)
            return
        try:
            digests = await self.done(step)
        except (ActivityError, asyncio.CancelledError) as error:
            self.fail(step, error)
            return
        self.state = fold(self.state, digests or [])
        if isinstance(step, Record):
            del self.inbox[: step.taken]
        if isinstance(step, Condense) and not digests:
            self.state = uncondensed(self.state)

    def fail(self, step: Step, error: Ended) -> None:
        """Take in that a step came to nothing, for good; what it still wrote is taken in later."""
        if isinstance(step, Act | Delegate):
            self.state = lost(self.state, step.action, known_of(error))
        elif isinstance(step, Entitle):
            self.state = untitled(self.state)
        elif isinstance(error, ActivityError) and was_wanted(error):
            self.inbox.append(after_failure(step, error))

    async def open(self, step: Open) -> None:
        step = step.model_copy(
            update={
                "items": self.first_items(step.spec),
                "parent": self.start.parent,
                "trial": self.start.trial,
            }
        )
        self.state = await self.do(step, State)
        left = self.inbox[len(step.items) :]
        self.inbox = [item for item in left if not knows(self.state, item)]
        self.opened = True

    def first_items(self, spec: Spec | None) -> tuple[Item, ...]:
        """What is recorded with the opening: nothing, where a long prompt leaves no room for it."""
        items = load([item for item in self.inbox if isinstance(item, Said)])
        if list(items) != self.inbox[: len(items)]:
            return ()
        size = sum(map(weight, items)) + (len(spec.model_dump_json()) if spec else 0)
        return items if size < ROOM else ()

    def seconds_left(self) -> float | None:
        deadline = self.spec.limits.deadline
        if deadline is None:
            return None
        return (datetime.fromisoformat(f"{deadline}+00:00") - workflow.now()).total_seconds()

    def is_long(self) -> bool:
        """Whether it is time for a next run; nobody must be waiting for an answer of this one."""
        info = workflow.info()
        long = info.get_current_history_length() > LONG or info.is_continue_as_new_suggested()
        old = info.is_target_worker_deployment_version_changed()
        # The late result of a call that was given up must find it settled by the same run.
        settled = not any(one.lost for one in self.state.pending)
        due = (long or old) and settled and self.nobody_waits()
        return due and weight(self.handed_over()) < PORTABLE

    def nobody_waits(self) -> bool:
        return workflow.all_handlers_finished()

    def handed_over(self) -> Start:
        handed = {"state": self.state, "inbox": tuple(self.inbox), "lanes": self.lanes.known()}
        return self.start.model_copy(update={"spec": None, **handed})

    def show(self) -> None:
        """Keep what an operator sees in the Temporal UI true."""
        workflow.set_current_details(details(self.conversation_id, self.user_id, self.state))
        shown = (self.state.status, self.state.spec_seq)
        if self.start.searchable and self.shown != shown:
            workflow.upsert_search_attributes(
                search_attributes(self.user_id, self.state, workflow.now().astimezone(UTC))
            )
        self.shown = shown
