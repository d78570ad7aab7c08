"""The run of a discussion: decide on a step, take it, and fold what it recorded."""

import asyncio
from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError
from temporalio.workflow import ContinueAsNewVersioningBehavior

from perdure.agent.discussion.decide import decide, find_limit, phase_of
from perdure.agent.discussion.evolve import end_early, evolve
from perdure.agent.discussion.log_state import CLOSED
from perdure.agent.discussion.state import (
    MAX_WAITING_CONTRIBUTIONS,
    Contribution,
    DiscussionStart,
    DiscussionState,
    DiscussionStatus,
)
from perdure.agent.discussion.status import describe_status, status_of
from perdure.agent.discussion.steps import (
    DiscussionStep,
    Draft,
    OpenDiscussion,
    OpenedDiscussion,
    Place,
    Prune,
    PruneEvents,
    RecordEvents,
    RecordResult,
    RecordTurns,
    TakeTurns,
    Write,
)
from perdure.events.discussion import SYSTEM, system_content
from perdure.workflows.batch.background import run_activity
from perdure.workflows.discussion.turns import Turns
from perdure.workflows.requests import bad_request

CLOSED_REASON = "it was closed"


class DiscussionRun:
    """A run of a discussion: its state, its inbox, and the loop over both."""

    def __init__(self, start: DiscussionStart) -> None:
        self.start = start
        self.state: DiscussionState | None = start.state
        self.inbox = list(start.inbox)
        self.is_paused = start.is_paused
        self.is_closing = False
        self.is_closed = False
        self.turns = Turns(start)
        self.failure: Exception | None = None
        self.started = start.started or workflow.now().isoformat()

    async def run(self) -> DiscussionStatus:
        """Run to the end. Raises ApplicationError and ActivityError if the log is unusable."""
        try:
            try:
                await self.discuss()
            except asyncio.CancelledError:
                self.close()
                await self.discuss()
        except (FailureError, ValueError) as error:
            self.failure = error
            await workflow.wait_condition(workflow.all_handlers_finished)
            raise
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self.status()

    async def discuss(self) -> None:
        if self.state is None:
            self.state = await self.open()
            self.inbox = [item for item in self.inbox if self.is_new(item)]
        while not self.is_closed:
            self.publish()
            if self.is_closing:
                await self.record_close()
                return
            if (limit := find_limit(self.state, self.age())) and self.state.ending is None:
                self.state = end_early(self.state, limit)
            if self.is_paused and self.state.stage != "over" and self.state.ending is None:
                await self.wait_while_paused()
                continue
            step = decide(self.state, self.inbox)
            if step is None:
                return
            self.continue_as_new_if_due()
            recorded = await self.perform(step)
            self.state = evolve(self.state, step, recorded, self.inbox)
            if isinstance(step, Write) and step.effect == "contribution":
                del self.inbox[0]

    async def open(self) -> DiscussionState:
        opened = await run_activity(
            "discussion.open", OpenDiscussion(key=self.start.key), OpenedDiscussion
        )
        known = {item.id: item.sequence for item in opened.logged if item.id}
        return DiscussionState(
            outline=opened.outline,
            end=opened.end,
            logged=opened.logged,
            logged_end=opened.log_end,
            contributed=known,
        )

    async def perform(self, step: DiscussionStep) -> RecordResult:
        """Take a step; what it writes is written once, however often a worker is lost."""
        assert self.state is not None, "a discussion begins with its opening"
        key, after = self.start.key, self.state.end
        match step:
            case TakeTurns():
                failures = await self.turns.take(step, self.state, self.turn_seconds())
                self.publish()
                answers = RecordTurns(key=key, step=step, after=after, failures=failures)
                return await run_activity(
                    "discussion.answers", answers, RecordResult, summary=f"record: {step.request}"
                )
            case Write():
                events = RecordEvents(key=key, step=step, after=after)
                return await run_activity(
                    "discussion.events", events, RecordResult, summary=step.effect
                )
            case Prune():
                await run_activity("discussion.prune", PruneEvents(key=key, step=step), type(None))
                return RecordResult(end=after)

    def add(self, item: Contribution) -> None:
        """Put what a person says or votes into the inbox, once by its id."""
        waiting = {known.id for known in self.inbox if known.id}
        if item.id not in waiting and self.is_new(item):
            self.inbox.append(item)

    def is_new(self, item: Contribution) -> bool:
        """Tell whether a contribution is a person's, and not in the log yet."""
        known = self.state.contributed if self.state is not None else {}
        return item.id not in known and not self.is_agent(item)

    def is_agent(self, item: Contribution) -> bool:
        """Tell whether an agent has the speaker's name; before the opening nobody knows."""
        return self.state is not None and item.speaker in self.state.outline.agents

    async def record(self, item: Contribution) -> int:
        """Return the place of a contribution once the log has it. Raises ApplicationError."""
        assert item.id is not None, "an update has an id"
        await workflow.wait_condition(lambda: self.state is not None or self.is_over())
        if self.is_agent(item):
            raise bad_request(f"{item.speaker} is no name of a person here.")
        if self.is_over() or len(self.inbox) >= MAX_WAITING_CONTRIBUTIONS:
            raise _refusal("The discussion is over, or too many wait: nothing was recorded.")
        self.add(item)
        await workflow.wait_condition(lambda: self.place_of(item) is not None or self.is_over())
        place = self.place_of(item)
        if not place:
            raise _refusal("The log did not take it: the discussion is over, or the name is taken.")
        return place

    def place_of(self, item: Contribution) -> int | None:
        return self.state.contributed.get(item.id or "") if self.state else None

    def is_over(self) -> bool:
        is_done = self.state is not None and self.state.stage == "over"
        return self.is_closing or self.failure is not None or is_done

    def pause(self) -> None:
        self.is_paused = True
        self.turns.pause()

    def resume(self) -> None:
        self.is_paused = False
        self.turns.resume()

    def close(self) -> None:
        self.is_closing = True
        self.turns.stop()

    async def record_close(self) -> None:
        assert self.state is not None, "a discussion begins with its opening"
        draft = Draft(type="SYSTEM", speaker=SYSTEM, content=system_content(CLOSED))
        place = Place(phase=self.state.phase, round=self.state.round)
        step = Write(number=self.state.step, place=place, drafts=(draft,), effect="closed")
        self.state = evolve(self.state, step, await self.perform(step))
        self.state = self.state.model_copy(update={"ending": CLOSED_REASON})
        self.is_closed = True
        self.publish()

    async def wait_while_paused(self) -> None:
        """Wait until it is resumed or closed, or its time is over."""
        assert self.state is not None, "a discussion begins with its opening"
        time = self.state.outline.limits.time
        left = None if time is None else timedelta(seconds=max(0.0, time - self.age()))
        try:
            await workflow.wait_condition(
                lambda: not self.is_paused or self.is_closing, timeout=left
            )
        except TimeoutError:
            return

    def age(self) -> float:
        """Return the seconds since the discussion began."""
        return (workflow.now() - datetime.fromisoformat(self.started)).total_seconds()

    def turn_seconds(self) -> float:
        assert self.state is not None, "a discussion begins with its opening"
        limits = self.state.outline.limits
        if limits.time is None:
            return limits.turn_time
        if self.state.ending is not None:
            return limits.turn_time
        return max(0.0, min(limits.turn_time, limits.time - self.age()))

    def continue_as_new_if_due(self) -> None:
        """Continue as new between two steps, when the history is long and no update waits."""
        info = workflow.info()
        long = info.get_current_history_length() > self.start.max_run_events
        old = info.is_target_worker_deployment_version_changed()
        due = long or old or info.is_continue_as_new_suggested()
        if due and not self.turns.tasks.tasks and workflow.all_handlers_finished():
            changes = {
                "state": self.state,
                "inbox": tuple(self.inbox),
                "is_paused": self.is_paused,
                "started": self.started,
            }
            workflow.continue_as_new(
                self.start.model_copy(update=changes),
                initial_versioning_behavior=ContinueAsNewVersioningBehavior.AUTO_UPGRADE,
            )

    def status(self) -> DiscussionStatus:
        key, speaking = self.start.key, tuple(self.turns.running)
        return status_of(key, self.state, speaking, self.is_paused, self.is_closed)

    def publish(self) -> None:
        """Update the details that the Temporal UI shows."""
        phase = phase_of(self.state) if self.state else None
        workflow.set_current_details(describe_status(self.status(), phase))


def _refusal(sentence: str) -> ApplicationError:
    return ApplicationError(sentence, type="Closed", non_retryable=True)
