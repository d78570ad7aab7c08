"""One conversation: decide what to do, do it, take in what came of it; until it is closed."""

import uuid
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from agent.decide import ROOM, decide, load
from agent.inbox import CloseAsked, Item, PauseAsked, ResumeAsked, Said, weight
from agent.spec import ModelSpec, Spec
from agent.start import Recorded, Snapshot, Start, snapshot
from agent.state import State, fold, knows, lost
from agent.steps import Act, Open, Record, Save, Step, Stop, Task
from events.digest import Digest
from workflows.failures import after_failure, ending, known_of
from workflows.messages import accept, said
from workflows.options import options

CLOSED = "The conversation is closed: start another one."

PORTABLE = 48 * 1024
"""Bytes of waiting items that may be handed over; more than that is recorded first."""

LONG = 1500
"""History events after which a run hands over to the next."""

UNOPENED = Spec(model=ModelSpec(name="none"))
"""Whose patience counts before the log has told which spec is in force."""


@workflow.defn(name="Conversation")
class Conversation:
    """The workflow of one conversation. Its log, not its history, is what must not be lost."""

    @workflow.init
    def __init__(self, start: Start) -> None:
        self.conversation_id = start.conversation_id
        self.user_id = start.user_id
        self.opened = start.state is not None
        self.state = start.state or State()
        self.inbox: list[Item] = list(start.inbox)
        self.saved = self.state.next_seq

    @workflow.run
    async def run(self, start: Start) -> Snapshot:
        if not self.opened:
            opening = Open(spec=start.spec, items=self.first_items(start.spec))
            self.state = await self.do(opening, State)
            left = self.inbox[len(opening.items) :]
            self.inbox = [item for item in left if not knows(self.state, item)]
            self.opened = True
        while True:
            while await self.goes_on():
                if step := decide(self.state, self.inbox):
                    await self.take(step)
                if self.is_long():
                    workflow.continue_as_new(self.handed_over())
            if self.saved != self.state.next_seq:
                await self.do(Stop(state=self.state.model_dump_json()), type(None))
                self.saved = self.state.next_seq
            await workflow.wait_condition(lambda: bool(self.inbox) or self.nobody_waits())
            if not self.inbox:
                return self.status()

    def first_items(self, spec: Spec | None) -> tuple[Item, ...]:
        """What is recorded with the opening: nothing, where a long prompt leaves no room for it."""
        items = load(self.inbox)
        size = sum(map(weight, items)) + (len(spec.model_dump_json()) if spec else 0)
        return items if size < ROOM else ()

    async def goes_on(self) -> bool:
        """Wait until there is something to do; false once there never will be."""
        if decide(self.state, self.inbox):
            return True
        if self.state.status == "closed":
            return False
        if self.saved != self.state.next_seq:
            self.saved = self.state.next_seq
            await self.do(Save(state=self.state.model_dump_json()), type(None))
        return await self.woken()

    async def woken(self) -> bool:
        patience = timedelta(seconds=self.spec.idle_timeout)
        try:
            await workflow.wait_condition(lambda: bool(self.inbox), timeout=patience)
        except TimeoutError:
            return bool(self.inbox)
        return True

    async def take(self, step: Step) -> None:
        """Do the step and take in what came of it, or that nothing came of it."""
        try:
            digests = await self.do(step, list[Digest])
        except ActivityError as error:
            if isinstance(step, Act):
                self.state = lost(self.state, step.action, known_of(error))
            else:
                self.inbox.append(after_failure(step, error))
            return
        self.state = fold(self.state, digests)
        if isinstance(step, Record):
            del self.inbox[: len(step.items)]

    def is_long(self) -> bool:
        """Whether it is time for a next run; nobody must be waiting for an answer of this one."""
        info = workflow.info()
        long = info.get_current_history_length() > LONG or info.is_continue_as_new_suggested()
        return long and self.nobody_waits() and sum(map(weight, self.inbox)) < PORTABLE

    def nobody_waits(self) -> bool:
        return workflow.all_handlers_finished()

    def handed_over(self) -> Start:
        return Start(
            conversation_id=self.conversation_id,
            user_id=self.user_id,
            state=self.state,
            inbox=tuple(self.inbox),
        )

    @property
    def spec(self) -> Spec:
        return self.state.spec or UNOPENED

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
        try:
            return await workflow.execute_activity(
                step.kind, task, result_type=result, **options(step, self.spec)
            )
        except ActivityError as error:
            if (end := ending(error)) is not None:
                raise end from error
            raise

    @workflow.signal(description="Say something: a text, or {text, message_id, sender}.")
    async def send_message(self, message: Any) -> None:
        item = accept(message)
        if not self.repeats(item):
            self.inbox.append(item)

    @workflow.update(description="Say something, and learn where in the log it stands.")
    async def submit_message(self, message: Any) -> Recorded:
        item = said(message)
        message_id = item.message_id or str(workflow.uuid4())
        item = item.model_copy(update={"message_id": message_id})
        await workflow.wait_condition(lambda: self.opened)
        if self.state.status == "closed":
            raise ApplicationError(CLOSED, type="Closed", non_retryable=True)
        if not self.repeats(item):
            self.inbox.append(item)
        await workflow.wait_condition(lambda: message_id in self.state.seen)
        seq = self.state.seen[message_id]
        event_id = uuid.uuid5(uuid.UUID(self.conversation_id), str(seq))
        return Recorded(seq=seq, event_id=str(event_id))

    @submit_message.validator
    def check_message(self, message: Any) -> None:
        said(message)

    @workflow.signal(description="Pause between two steps; messages are kept until it resumes.")
    async def pause(self) -> None:
        self.inbox.append(PauseAsked())

    @workflow.signal(description="Go on after a pause, an error or a limit.")
    async def resume(self) -> None:
        self.inbox.append(ResumeAsked())

    @workflow.signal(description="End the conversation for good; its log stays.")
    async def close(self) -> None:
        self.inbox.append(CloseAsked())

    @workflow.query(description="Status and reason, turn, counts, tokens, cost, what waits.")
    def status(self) -> Snapshot:
        return snapshot(self.conversation_id, self.state, len(self.inbox))

    def repeats(self, item: Item) -> bool:
        """Whether this message came before, by its sender's own id for it."""
        if not isinstance(item, Said) or item.message_id is None:
            return False
        waiting = (one.message_id for one in self.inbox if isinstance(one, Said))
        return knows(self.state, item) or item.message_id in waiting
