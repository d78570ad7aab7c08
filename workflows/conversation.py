"""The workflow of one conversation: its start, and the handlers of its requests."""

import uuid
from collections.abc import Sequence
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from perdure.agent.configure import CHANGEABLE_FIELDS, check_changes
from perdure.agent.loop.inbox import (
    CondenseRequest,
    PauseRequest,
    RefusedInput,
    ResumeRequest,
    SpecChange,
)
from perdure.agent.loop.start import ConversationStatus, RecordedMessage
from perdure.events.validation_errors import quote
from perdure.temporal.sessions import AdmissionStatus
from perdure.workflows.batch.budget_requests import parse_allowance
from perdure.workflows.loop import ConversationLoop
from perdure.workflows.messages import parse_message, parse_start, to_inbox_item
from perdure.workflows.requests import bad_request, parse_note, parse_response, resolve_response

CLOSED_MESSAGE = "The conversation is closed: start another one."


def unwrap(sent: tuple[Any, ...]) -> Any:
    """Return the only argument of a handler, or all arguments if there is not exactly one.

    A handler with a fixed signature would fail the workflow task on a wrong number of arguments.
    """
    return sent[0] if len(sent) == 1 else sent


# Invalid input, as somebody may type it, fails the workflow with a sentence, and the next message
# opens the conversation again. A bug only fails the workflow task, and waits for the next version.
@workflow.defn(name="Conversation", failure_exception_types=[ValueError])
class Conversation:
    """The workflow of one conversation, whose log (not its history) must never be lost.

    A handler puts its request into the inbox, from which the loop takes it.
    """

    @workflow.init
    def __init__(self, *sent: Any) -> None:
        self.loop = ConversationLoop(parse_start(sent))

    @workflow.run
    async def run(self, *sent: Any) -> ConversationStatus:  # noqa: ARG002 - `__init__` has it
        return await self.loop.run()

    @workflow.signal(description="Say something: a text, or {text, images, message_id, sender}.")
    async def send_message(self, *message: Any) -> None:
        self.loop.add(to_inbox_item(unwrap(message)))

    @workflow.update(description="Say something, and learn where in the log it stands.")
    async def submit_message(self, *message: Any) -> RecordedMessage:
        item = parse_message(unwrap(message))
        message_id = item.message_id or str(workflow.uuid4())
        item = item.model_copy(update={"message_id": message_id})
        await self.ensure_open()
        self.loop.add(item)
        await self.loop.wait_until(lambda: message_id in self.loop.state.message_seqs)
        return self.event_position(self.loop.state.message_seqs[message_id])

    @submit_message.validator
    def check_message(self, *message: Any) -> None:
        parse_message(unwrap(message))

    @workflow.signal(description="Pause between two steps; messages are kept until it resumes.")
    async def pause(self) -> None:
        self.loop.inbox.append(PauseRequest())

    @workflow.signal(description="Go on after a pause, an interrupt, an error or a limit.")
    async def resume(self) -> None:
        self.loop.inbox.append(ResumeRequest())

    @workflow.signal(description="Stop the model or the tool that is at work; wait for the user.")
    async def interrupt(self) -> None:
        self.loop.interrupt()

    @workflow.signal(description="Make the view smaller before the model is asked again.")
    async def condense(self) -> None:
        self.loop.inbox.append(CondenseRequest())

    @workflow.signal(description="Of a batch to its sample: so much may be spent in all.")
    async def grant(self, *allowance: Any) -> None:
        if (parsed := parse_allowance(unwrap(allowance))) is not None:
            self.loop.grant(parsed)

    @workflow.signal(description="Of the user's sessions: go on, by the admission of this id.")
    async def admit(self, *admission_id: Any) -> None:
        self.loop.admission.admit(unwrap(admission_id))

    @workflow.signal(description="Of the user's sessions: too many work; a message makes it go on.")
    async def suspend(self, *admission_id: Any) -> None:
        await self.loop.admission.suspend(unwrap(admission_id))

    @workflow.signal(description="End the conversation for good; its log stays.")
    async def close(self) -> None:
        self.loop.close()

    @workflow.signal(dynamic=True, description="Anything else leaves a note that there is no such.")
    async def on_unknown_signal(self, name: str, sent: Sequence[RawValue]) -> None:  # noqa: ARG002
        # The sender of a signal gets no answer.
        self.loop.inbox.append(RefusedInput(detail=f"There is no signal {quote(name)}."))

    @workflow.update(
        description="Accept or reject waiting actions: {accept, calls or through, reason}."
    )
    async def respond(self, *response: Any) -> list[str]:
        parsed = parse_response(unwrap(response))
        await self.ensure_open()
        item, actions = resolve_response(parsed, self.loop.state)
        await self.loop.record(item)
        return [action.tool_call_id for action in actions]

    @respond.validator
    def check_response(self, *response: Any) -> None:
        parse_response(unwrap(response))

    @workflow.update(
        description="Change the model, the confirmation policy, the limits …: {field: value}."
    )
    async def configure(self, *changes: Any) -> RecordedMessage:
        await self.change_spec(unwrap(changes))
        return self.event_position(self.loop.state.spec_seq)

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
            await self.loop.record(item)

    @note.validator
    def check_note(self, *sent: Any) -> None:
        parse_note(unwrap(sent))

    @workflow.query(description="Of the user's sessions: by which admission it works.")
    def admission(self) -> AdmissionStatus:
        return self.loop.admission.status()

    @workflow.query(description="Status and reason, turn, counts, tokens, cost, what waits.")
    def status(self) -> ConversationStatus:
        return self.loop.status()

    async def ensure_open(self) -> None:
        await self.loop.wait_until(lambda: self.loop.is_opened)
        if self.loop.state.status == "closed":
            raise ApplicationError(CLOSED_MESSAGE, type="Closed", non_retryable=True)

    async def change_spec(self, changes: dict[str, Any]) -> None:
        """Change the spec and wait until the log has it; changes follow one another."""
        await self.ensure_open()
        while self.is_changing():
            await self.loop.wait_until(lambda: not self.is_changing())
        try:
            item = check_changes(self.loop.spec, changes)
        except ValueError as error:
            raise bad_request(str(error)) from None  # as its cause may be of any length
        await self.loop.record(item)

    def is_changing(self) -> bool:
        return any(isinstance(item, SpecChange) for item in self.loop.inbox)

    def event_position(self, seq: int) -> RecordedMessage:
        event_id = uuid.uuid5(uuid.UUID(self.loop.conversation_id), str(seq))
        return RecordedMessage(seq=seq, event_id=str(event_id))
