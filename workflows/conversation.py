"""The workflow of one conversation: its start, and the handlers of its requests."""

import uuid
from collections.abc import Sequence
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from perdure.agent.configure import CHANGEABLE_FIELDS, check_changes
from perdure.agent.loop.inbox import (
    ActorItem,
    CondenseRequest,
    InboxItem,
    PauseRequest,
    RefusedInput,
    ResumeRequest,
    Signal,
    SpecChange,
    UserMessage,
)
from perdure.agent.loop.start import ConversationStatus, RecordedMessage, RecordedSignal
from perdure.agent.loop.wait import remembered_name
from perdure.events.validation_errors import quote
from perdure.temporal.sessions import AdmissionStatus
from perdure.workflows.batch.budget_requests import parse_allowance
from perdure.workflows.loop import ConversationLoop
from perdure.workflows.messages import (
    bad_message,
    parse_message,
    parse_start,
    parse_webhook_failure,
    to_inbox_item,
)
from perdure.workflows.requests import bad_request, parse_note, parse_response, resolve_response
from perdure.workflows.wait_requests import (
    find_excess,
    is_awaited,
    is_repeated,
    parse_answer,
    parse_signal,
    resolve_answer,
    to_signal,
)

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
        self.actor: str | None = None
        """Who sent the request that a handler has just been given; it is set by `ActorReader`."""
        self.traceparent: str | None = None
        """The span from which that request was sent."""

    @workflow.run
    async def run(self, *sent: Any) -> ConversationStatus:  # noqa: ARG002 - `__init__` has it
        return await self.loop.run()

    @workflow.signal(
        description="Say something: a text, or {text, images, message_id, sender, run}."
    )
    async def send_message(self, *message: Any) -> None:
        self.loop.add(self.ascribe(to_inbox_item(unwrap(message))))

    @workflow.update(description="Say something, and learn where in the log it stands.")
    async def submit_message(self, *message: Any) -> RecordedMessage:
        item = parse_message(unwrap(message))
        message_id = item.message_id or str(workflow.uuid4())
        item = item.model_copy(
            update={"message_id": message_id, "actor": self.actor, **self.trace()}
        )
        await (self.ensure_opened() if item.reopen else self.ensure_open())
        self.loop.add(item)
        await self.loop.wait_until(lambda: message_id in self.loop.state.message_seqs)
        return self.event_position(self.loop.state.message_seqs[message_id])

    @submit_message.validator
    def check_message(self, *message: Any) -> None:
        parsed, spec = parse_message(unwrap(message)), self.loop.state.spec
        if parsed.images and spec is not None and spec.model.vision is False:
            name = spec.model.name
            raise bad_message(f"{name} has no vision: describe the images, or put them into files.")

    @workflow.signal(description="Pause between two steps; messages are kept until it resumes.")
    async def pause(self) -> None:
        self.loop.inbox.append(PauseRequest(actor=self.actor))

    @workflow.signal(description="Go on after a pause, an interrupt, an error or a limit.")
    async def resume(self) -> None:
        self.loop.inbox.append(ResumeRequest(actor=self.actor))

    @workflow.signal(description="Stop the model or the tool that is at work; wait for the user.")
    async def interrupt(self) -> None:
        self.loop.interrupt(self.actor)

    @workflow.signal(description="Make the view smaller before the model is asked again.")
    async def condense(self) -> None:
        self.loop.inbox.append(CondenseRequest(actor=self.actor))

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

    @workflow.signal(description="Of a delivery: a webhook has not taken an event.")
    async def record_webhook_failure(self, *failure: Any) -> None:
        self.loop.inbox.append(parse_webhook_failure(unwrap(failure)))

    @workflow.signal(description="End the conversation for good; its log stays.")
    async def close(self) -> None:
        self.loop.close(self.actor)

    @workflow.signal(dynamic=True, description="Anything else leaves a note that there is no such.")
    async def on_unknown_signal(self, name: str, sent: Sequence[RawValue]) -> None:  # noqa: ARG002
        # The sender of a signal gets no answer.
        self.loop.inbox.append(RefusedInput(detail=f"There is no signal {quote(name)}."))

    @workflow.update(
        description="Accept or reject waiting actions: {accept, calls or through, reason}."
    )
    async def respond(self, *response: Any) -> list[str]:
        parsed, actor = parse_response(unwrap(response)), self.actor
        await self.ensure_open()
        item, actions = resolve_response(parsed, self.loop.state)
        await self.loop.record(item.model_copy(update={"actor": actor}))
        return [action.tool_call_id for action in actions]

    @respond.validator
    def check_response(self, *response: Any) -> None:
        parse_response(unwrap(response))

    @workflow.signal(description="Send a signal to the agent by its name: {name, data, signal_id}.")
    async def send_signal(self, *sent: Any) -> None:
        item = to_signal(unwrap(sent), str(workflow.uuid4()))
        if isinstance(item, Signal):
            if is_repeated(item, self.loop.state, self.loop.inbox):
                return
            excess = find_excess(item, self.loop.state, self.loop.inbox)
            item = item if excess is None else RefusedInput(detail=excess)
        self.loop.add(self.ascribe(item))

    @workflow.update(description="Send a signal, and learn whether the agent was waiting for it.")
    async def submit_signal(self, *sent: Any) -> RecordedSignal:
        item, actor = parse_signal(unwrap(sent), str(workflow.uuid4())), self.actor
        await self.ensure_open()
        taken = is_awaited(item, self.loop.state.wait)
        if not is_repeated(item, self.loop.state, self.loop.inbox):
            if excess := find_excess(item, self.loop.state, self.loop.inbox):
                raise ApplicationError(excess, type="Conflict", non_retryable=True)
            self.loop.inbox.append(item.model_copy(update={"actor": actor}))
        name = remembered_name(item.signal_id)
        await self.loop.wait_until(lambda: name in self.loop.state.message_seqs)
        place = self.event_position(self.loop.state.message_seqs[name])
        return RecordedSignal(seq=place.seq, event_id=place.event_id, taken=taken)

    @submit_signal.validator
    def check_signal(self, *sent: Any) -> None:
        parse_signal(unwrap(sent), "unknown")

    @workflow.update(description="Answer the question that the agent asks: {choice} or {text}.")
    async def answer(self, *sent: Any) -> str:
        parsed, actor = parse_answer(unwrap(sent)), self.actor
        await self.ensure_open()
        item = resolve_answer(parsed, self.loop.state, self.loop.inbox)
        await self.loop.record(item.model_copy(update={"actor": actor}))
        return item.text

    @answer.validator
    def check_answer(self, *sent: Any) -> None:
        parse_answer(unwrap(sent))

    @workflow.update(
        description="Change the model, the confirmation policy, the limits …: {field: value}."
    )
    async def configure(self, *changes: Any) -> RecordedMessage:
        await self.change_spec(unwrap(changes), self.actor)
        return self.event_position(self.loop.state.spec_seq)

    @configure.validator
    def check_changes(self, *changes: Any) -> None:
        if not isinstance(unwrap(changes), dict) or not unwrap(changes):
            raise bad_request(
                f"Name what is to change, as an object: {', '.join(CHANGEABLE_FIELDS)}."
            )

    @workflow.update(description="Note a title, tags or state: {title} or {tags} or {state}.")
    async def note(self, *sent: Any) -> None:
        note, actor = parse_note(unwrap(sent)), self.actor
        await self.ensure_open()
        if note.tags is not None:
            await self.change_spec({"tags": note.tags}, actor)
        note_id = update.id if (update := workflow.current_update_info()) else ""
        for item in note.items(note_id):
            await self.loop.record(item.model_copy(update={"actor": actor}))
        if refusal := self.loop.refusals.pop(note_id, None):
            kind = "Forbidden" if refusal["cause"] == "forbidden" else "Conflict"
            raise ApplicationError(refusal["detail"], type=kind, non_retryable=True)

    @note.validator
    def check_note(self, *sent: Any) -> None:
        parse_note(unwrap(sent))

    @workflow.query(description="Of the user's sessions: by which admission it works.")
    def admission(self) -> AdmissionStatus:
        return self.loop.admission.status()

    @workflow.query(description="Status and reason, turn, counts, tokens, cost, what waits.")
    def status(self) -> ConversationStatus:
        return self.loop.status()

    async def ensure_opened(self) -> None:
        await self.loop.wait_until(lambda: self.loop.is_opened)

    async def ensure_open(self) -> None:
        await self.ensure_opened()
        if self.loop.state.status == "closed":
            raise ApplicationError(CLOSED_MESSAGE, type="Closed", non_retryable=True)

    def ascribe(self, item: InboxItem) -> InboxItem:
        """Return an item of the request that is handled, with who sent it."""
        if not isinstance(item, ActorItem):
            return item
        fields = {} if self.actor is None else {"actor": self.actor}
        if isinstance(item, UserMessage):
            fields |= self.trace()
        return item.model_copy(update=fields) if fields else item

    def trace(self) -> dict[str, str]:
        """Return the field of a message that names the span it was sent from, if it is known."""
        return {} if self.traceparent is None else {"traceparent": self.traceparent}

    async def change_spec(self, changes: dict[str, Any], actor: str | None = None) -> None:
        """Change the spec and wait until the log has it; changes follow one another."""
        await self.ensure_open()
        while self.is_changing():
            await self.loop.wait_until(lambda: not self.is_changing())
        try:
            item = check_changes(self.loop.spec, changes)
        except ValueError as error:
            raise bad_request(str(error)) from None  # as its cause may be of any length
        await self.loop.record(item.model_copy(update={"actor": actor}))

    def is_changing(self) -> bool:
        return any(isinstance(item, SpecChange) for item in self.loop.inbox)

    def event_position(self, seq: int) -> RecordedMessage:
        event_id = uuid.uuid5(uuid.UUID(self.loop.conversation_id), str(seq))
        return RecordedMessage(seq=seq, event_id=str(event_id))
