"""Signal, update and query handlers of a conversation's workflow."""

import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from perdure.agent.configure import CHANGEABLE_FIELDS, check_changes
from perdure.agent.loop.inbox import (
    CloseRequest,
    CondenseRequest,
    InboxItem,
    InterruptRequest,
    PauseRequest,
    RefusedInput,
    ResumeRequest,
    SpecChange,
    UserMessage,
)
from perdure.agent.loop.start import ConversationStatus, RecordedMessage, Start, build_status
from perdure.agent.loop.state import State, is_recorded
from perdure.agent.spec import Agent, ModelSpec
from perdure.events.validation_errors import quote
from perdure.workflows.batch.budget_requests import parse_allowance
from perdure.workflows.messages import parse_message, to_inbox_item
from perdure.workflows.requests import bad_request, parse_note, parse_response, resolve_response

CLOSED_MESSAGE = "The conversation is closed: start another one."

PLACEHOLDER_SPEC = Agent(model=ModelSpec(name="none"))
"""The spec whose timeouts count until the log has been opened."""


def unwrap(sent: tuple[Any, ...]) -> Any:
    """Return the only argument of a handler, or all arguments if there is not exactly one.

    A handler with a fixed signature would fail the workflow task on a wrong number of arguments.
    """
    return sent[0] if len(sent) == 1 else sent


class Handlers(ABC):
    """Handlers that put each request into the inbox, from which the loop takes it."""

    conversation_id: str
    is_opened: bool
    start: Start
    state: State
    inbox: list[InboxItem]

    @abstractmethod
    def stop(self) -> None:
        """Cancel the model and tool calls that run."""

    @property
    def spec(self) -> Agent:
        return self.state.spec or PLACEHOLDER_SPEC

    @workflow.signal(description="Say something: a text, or {text, images, message_id, sender}.")
    async def send_message(self, *message: Any) -> None:
        item = to_inbox_item(unwrap(message))
        if not self.is_duplicate(item):
            self.inbox.append(item)

    @workflow.update(description="Say something, and learn where in the log it stands.")
    async def submit_message(self, *message: Any) -> RecordedMessage:
        item = parse_message(unwrap(message))
        message_id = item.message_id or str(workflow.uuid4())
        item = item.model_copy(update={"message_id": message_id})
        await self.ensure_open()
        if not self.is_duplicate(item):
            self.inbox.append(item)
        await workflow.wait_condition(lambda: message_id in self.state.message_seqs)
        return self.event_position(self.state.message_seqs[message_id])

    @submit_message.validator
    def check_message(self, *message: Any) -> None:
        parse_message(unwrap(message))

    @workflow.signal(description="Pause between two steps; messages are kept until it resumes.")
    async def pause(self) -> None:
        self.inbox.append(PauseRequest())

    @workflow.signal(description="Go on after a pause, an interrupt, an error or a limit.")
    async def resume(self) -> None:
        self.inbox.append(ResumeRequest())

    @workflow.signal(description="Stop the model or the tool that is at work; wait for the user.")
    async def interrupt(self) -> None:
        self.inbox.append(InterruptRequest())
        self.stop()

    @workflow.signal(description="Make the view smaller before the model is asked again.")
    async def condense(self) -> None:
        self.inbox.append(CondenseRequest())

    @workflow.signal(description="Of a batch to its sample: so much may be spent in all.")
    async def grant(self, *allowance: Any) -> None:
        parsed = parse_allowance(unwrap(allowance))
        if self.start.attempt is not None and parsed is not None:
            trial = self.start.attempt.model_copy(update={"allowance": parsed})
            self.start = self.start.model_copy(update={"attempt": trial})

    @workflow.signal(name="close", description="End the conversation for good; its log stays.")
    async def on_close(self) -> None:
        self.close()

    @workflow.signal(dynamic=True, description="Anything else leaves a note that there is no such.")
    async def on_unknown_signal(self, name: str, sent: Sequence[RawValue]) -> None:  # noqa: ARG002
        # The sender of a signal gets no answer; older histories have no such note.
        if workflow.patched("a stray signal leaves a note"):
            self.inbox.append(RefusedInput(detail=f"There is no signal {quote(name)}."))

    def close(self) -> None:
        self.inbox.append(CloseRequest())
        self.stop()

    @workflow.update(
        description="Accept or reject waiting actions: {accept, calls or through, reason}."
    )
    async def respond(self, *response: Any) -> list[str]:
        parsed = parse_response(unwrap(response))
        await self.ensure_open()
        item, actions = resolve_response(parsed, self.state)
        await self.record_item(item)
        return [action.tool_call_id for action in actions]

    @respond.validator
    def check_response(self, *response: Any) -> None:
        parse_response(unwrap(response))

    @workflow.update(
        description="Change the model, the confirmation policy, the limits …: {field: value}."
    )
    async def configure(self, *changes: Any) -> RecordedMessage:
        await self.change_spec(unwrap(changes))
        return self.event_position(self.state.spec_seq)

    @configure.validator
    def check_changes(self, *changes: Any) -> None:
        if not isinstance(unwrap(changes), dict) or not unwrap(changes):
            raise bad_request(
                f"Name what is to change, as an object: {', '.join(CHANGEABLE_FIELDS)}."
            )

    @workflow.update(description="Note a title, tags or state: {title} or {tags} or {state}.")
    async def note(self, *sent: Any) -> None:
        note = parse_note(unwrap(sent))
        await self.ensure_open()
        if note.tags is not None:
            await self.change_spec({"tags": note.tags})
        for item in note.items():
            await self.record_item(item)

    @note.validator
    def check_note(self, *sent: Any) -> None:
        parse_note(unwrap(sent))

    @workflow.query(description="Status and reason, turn, counts, tokens, cost, what waits.")
    def status(self) -> ConversationStatus:
        return build_status(self.conversation_id, self.state, len(self.inbox))

    async def ensure_open(self) -> None:
        await workflow.wait_condition(lambda: self.is_opened)
        if self.state.status == "closed":
            raise ApplicationError(CLOSED_MESSAGE, type="Closed", non_retryable=True)

    async def change_spec(self, changes: dict[str, Any]) -> None:
        """Change the spec and wait until the log has it; changes follow one another."""
        await self.ensure_open()
        while self.is_changing():
            await workflow.wait_condition(lambda: not self.is_changing())
        try:
            item = check_changes(self.spec, changes)
        except ValueError as error:
            raise bad_request(str(error)) from None  # as its cause may be of any length
        await self.record_item(item)

    def is_changing(self) -> bool:
        return any(isinstance(item, SpecChange) for item in self.inbox)

    async def record_item(self, item: InboxItem) -> None:
        """Put an item into the inbox, and wait until it is in the log."""
        self.inbox.append(item)
        await workflow.wait_condition(lambda: all(waiting is not item for waiting in self.inbox))

    def event_position(self, seq: int) -> RecordedMessage:
        event_id = uuid.uuid5(uuid.UUID(self.conversation_id), str(seq))
        return RecordedMessage(seq=seq, event_id=str(event_id))

    def is_duplicate(self, item: InboxItem) -> bool:
        """Tell whether a message with the same `message_id` came before."""
        if not isinstance(item, UserMessage) or item.message_id is None:
            return False
        waiting_ids = (
            waiting.message_id for waiting in self.inbox if isinstance(waiting, UserMessage)
        )
        return is_recorded(self.state, item) or item.message_id in waiting_ids
