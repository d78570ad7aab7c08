"""How a conversation has a step done, and how what is at work is stopped."""

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError
from temporalio.workflow import ActivityConfig

from agent.start import Errand
from agent.steps import (
    Act,
    Condense,
    Delegate,
    Entitle,
    Finish,
    Open,
    Report,
    Save,
    Step,
    Stop,
    Task,
    Think,
)
from events.digest import Digest
from workflows.children import STOPPED, outcome
from workflows.failures import ending, nobody_there
from workflows.handlers import Handlers
from workflows.lanes import Lanes
from workflows.options import at_home, options

STOPPABLE = (Think, Condense, Entitle, Act, Delegate)
"""The steps that an interrupt stops."""


class Doing(Handlers):
    """Has the activity of a step's kind do it; what is at work can be stopped."""

    user_id: str
    lanes: Lanes
    stoppable: list[asyncio.Task[Any]]
    stopping: bool

    async def done(self, step: Step) -> list[Digest] | None:
        match step:
            case Delegate():
                return await self.delegate(step)
            case Save() | Stop():
                await self.do(step, type(None))
                return None
            case _:
                digests: list[Digest] = await self.do(step, list[Digest])
                return digests

    async def delegate(self, step: Delegate) -> list[Digest]:
        """Have a child conversation do it, and report what it came to."""
        errand: Errand = await self.do(step, Errand)
        if errand.start is None:
            return list(errand.answered)
        known = {"searchable": self.start.searchable, "lanes": self.lanes.known()}
        start = errand.start.model_copy(update=known)
        failure = STOPPED if self.stopping else await outcome(start, self.stopped_with_us)
        report = Report(
            action=step.action,
            child=errand.start.conversation_id,
            spec=step.spec,
            files=self.state.files,
            failure=failure,
        )
        digests: list[Digest] = await self.do(report, list[Digest])
        return digests

    async def do(self, step: Step | Open, result: Any) -> Any:
        """Have the activity of the step's kind do it, its events to begin at the next slot.

        Raises ActivityError, or ApplicationError where this run must not go on.
        """
        task = Task[Any](
            conversation_id=self.conversation_id,
            user_id=self.user_id,
            base=self.state.next_seq,
            step=step,
        )
        chosen = options(step, self.state, self.spec)
        try:
            if (home := self.home_of(step)) is not None:
                try:
                    return await self.awaited(
                        step, task, result, {**chosen, **at_home(home, self.spec)}
                    )
                except ActivityError as error:
                    if not nobody_there(error):
                        raise
            return await self.lanes.routed(
                step, self.spec, chosen, lambda way: self.awaited(step, task, result, way)
            )
        except ActivityError as error:
            if (end := ending(step, error)) is not None:
                raise end from error
            raise

    def home_of(self, step: Step | Open) -> str | None:
        """The queue of the workers that have the files which the step is about."""
        if isinstance(step, Finish) and step.trial.look:
            return self.state.home
        if not isinstance(step, Act | Delegate | Report):
            return None
        return self.state.home or (self.start.parent.home if self.start.parent else None)

    async def awaited(
        self, step: Step | Open, task: Task[Any], result: Any, chosen: ActivityConfig
    ) -> Any:
        activity = workflow.start_activity(step.kind, task, result_type=result, **chosen)
        # What the log is told must not be stopped half-way: a repeat would say it twice.
        if isinstance(step, STOPPABLE):
            return await self.stopped_with_us(activity)
        return await activity

    async def stopped_with_us(self, work: Any) -> Any:
        """Wait for work that an interrupt may stop; what it had so far is still its result."""
        task = asyncio.ensure_future(work)
        self.stoppable.append(task)
        if self.stopping:
            task.cancel()
        try:
            return await task
        finally:
            self.stoppable.remove(task)

    def stop(self) -> None:
        """Stop the model and the tools that are at work, and what they would begin."""
        self.stopping = True
        for task in self.stoppable:
            task.cancel()
