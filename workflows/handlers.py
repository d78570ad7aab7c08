"""What people do with a conversation: the handlers of its workflow."""

import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from agent.configure import FIELDS, changed
from agent.inbox import (
    CloseAsked,
    CondenseAsked,
    Configured,
    InterruptAsked,
    Item,
    PauseAsked,
    Refused,
    ResumeAsked,
    Said,
)
from agent.misfit import quoted
from agent.spec import ModelSpec, Spec
from agent.start import Recorded, Snapshot, Start, snapshot
from agent.state import State, knows
from workflows.allowances import allowance_of
from workflows.messages import accept, said
from workflows.requests import answered, noted, refusal, response_of

CLOSED = "The conversation is closed: start another one."

UNOPENED = Spec(model=ModelSpec(name="none"))
"""Whose patience counts before the log has told which spec is in force."""


def one(sent: tuple[Any, ...]) -> Any:
    """What was sent to a handler that takes one thing; all of it where that is not one.

    A handler that would not take it would stop the workflow: who signals is told nothing.
    """
    return sent[0] if len(sent) == 1 else sent


class Handlers(ABC):
    """Each puts what was asked for into the inbox; the loop takes it from there."""

    conversation_id: str
    opened: bool
    start: Start
    state: State
    inbox: list[Item]

    @abstractmethod
    def stop(self) -> None:
        """Stop the model and the tools that are at work."""

    @property
    def spec(self) -> Spec:
        return self.state.spec or UNOPENED

    @workflow.signal(description="Say something: a text, or {text, images, message_id, sender}.")
    async def send_message(self, *message: Any) -> None:
        item = accept(one(message))
        if not self.repeats(item):
            self.inbox.append(item)

    @workflow.update(description="Say something, and learn where in the log it stands.")
    async def submit_message(self, *message: Any) -> Recorded:
        item = said(one(message))
        message_id = item.message_id or str(workflow.uuid4())
        item = item.model_copy(update={"message_id": message_id})
        await self.must_be_open()
        if not self.repeats(item):
            self.inbox.append(item)
        await workflow.wait_condition(lambda: message_id in self.state.seen)
        return self.recorded(self.state.seen[message_id])

    @submit_message.validator
    def check_message(self, *message: Any) -> None:
        said(one(message))

    @workflow.signal(description="Pause between two steps; messages are kept until it resumes.")
    async def pause(self) -> None:
        self.inbox.append(PauseAsked())

    @workflow.signal(description="Go on after a pause, an interrupt, an error or a limit.")
    async def resume(self) -> None:
        self.inbox.append(ResumeAsked())

    @workflow.signal(description="Stop the model or the tool that is at work; wait for the user.")
    async def interrupt(self) -> None:
        self.inbox.append(InterruptAsked())
        self.stop()

    @workflow.signal(description="Make the view smaller before the model is asked again.")
    async def condense(self) -> None:
        self.inbox.append(CondenseAsked())

    @workflow.signal(description="Of a batch to its sample: so much may be spent in all.")
    async def grant(self, *allowance: Any) -> None:
        granted = allowance_of(one(allowance))
        if self.start.trial is not None and granted is not None:
            trial = self.start.trial.model_copy(update={"allowance": granted})
            self.start = self.start.model_copy(update={"trial": trial})

    @workflow.signal(name="close", description="End the conversation for good; its log stays.")
    async def close_asked(self) -> None:
        self.close()

    @workflow.signal(dynamic=True, description="Anything else leaves a note that there is no such.")
    async def stray(self, name: str, sent: Sequence[RawValue]) -> None:  # noqa: ARG002
        # Who signals is told nothing; histories from before this handler have no such note.
        if workflow.patched("a stray signal leaves a note"):
            self.inbox.append(Refused(detail=f"There is no signal {quoted(name)}."))

    def close(self) -> None:
        self.inbox.append(CloseAsked())
        self.stop()

    @workflow.update(
        description="Accept or reject waiting actions: {accept, calls or through, reason}."
    )
    async def respond(self, *response: Any) -> list[str]:
        asked = response_of(one(response))
        await self.must_be_open()
        item, meant = answered(asked, self.state)
        await self.taken(item)
        return [one.tool_call_id for one in meant]

    @respond.validator
    def check_response(self, *response: Any) -> None:
        response_of(one(response))

    @workflow.update(
        description="Change the model, the confirmation policy, the limits …: {field: value}."
    )
    async def configure(self, *changes: Any) -> Recorded:
        await self.change(one(changes))
        return self.recorded(self.state.spec_seq)

    @configure.validator
    def check_changes(self, *changes: Any) -> None:
        if not isinstance(one(changes), dict) or not one(changes):
            raise refusal(f"Name what is to change, as an object: {', '.join(FIELDS)}.")

    @workflow.update(description="Note a title, tags or state: {title} or {tags} or {state}.")
    async def note(self, *sent: Any) -> None:
        note = noted(one(sent))
        await self.must_be_open()
        if note.tags is not None:
            await self.change({"tags": note.tags})
        for item in note.items():
            await self.taken(item)

    @note.validator
    def check_note(self, *sent: Any) -> None:
        noted(one(sent))

    @workflow.query(description="Status and reason, turn, counts, tokens, cost, what waits.")
    def status(self) -> Snapshot:
        return snapshot(self.conversation_id, self.state, len(self.inbox))

    async def must_be_open(self) -> None:
        await workflow.wait_condition(lambda: self.opened)
        if self.state.status == "closed":
            raise ApplicationError(CLOSED, type="Closed", non_retryable=True)

    async def change(self, changes: dict[str, Any]) -> None:
        """Change the spec, and wait until that is in the log; one change after the other."""
        await self.must_be_open()
        while self.is_changing():
            await workflow.wait_condition(lambda: not self.is_changing())
        try:
            item = changed(self.spec, changes)
        except ValueError as error:
            raise refusal(str(error)) from None  # as its cause may be of any length
        await self.taken(item)

    def is_changing(self) -> bool:
        return any(isinstance(item, Configured) for item in self.inbox)

    async def taken(self, item: Item) -> None:
        """Put it into the inbox, and wait until it is in the log."""
        self.inbox.append(item)
        await workflow.wait_condition(lambda: all(one is not item for one in self.inbox))

    def recorded(self, seq: int) -> Recorded:
        event_id = uuid.uuid5(uuid.UUID(self.conversation_id), str(seq))
        return Recorded(seq=seq, event_id=str(event_id))

    def repeats(self, item: Item) -> bool:
        """Whether this message came before, by its sender's own id for it."""
        if not isinstance(item, Said) or item.message_id is None:
            return False
        known = (one.message_id for one in self.inbox if isinstance(one, Said))
        return knows(self.state, item) or item.message_id in known
