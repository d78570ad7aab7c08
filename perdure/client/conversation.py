"""The handle of one conversation, for programs."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from temporalio.client import WorkflowFailureError, WorkflowHandle
from temporalio.service import RPCError

from perdure.agent.loop.inbox import UserMessage
from perdure.agent.loop.start import ConversationStatus, RecordedMessage, build_status
from perdure.agent.loop.state import State
from perdure.agent.spec import Agent
from perdure.client.diagnosis.diagnose import MAX_SILENCE, DiagnosisOptions, diagnose_workflow
from perdure.client.diagnosis.trouble import ENDED_CAUSE, Trouble, temporal_unreachable
from perdure.client.images import Image, make_message, store_images
from perdure.client.live import RunningStep, list_running_steps, watch_running_steps
from perdure.client.logged_status import read_logged_status
from perdure.client.outage import Outage
from perdure.client.turn import Turn, TurnFailed, TurnResult, read_newest_state
from perdure.client.workflow import ConversationWorkflow, is_running
from perdure.errors import Conflict, NotFound, Unreachable
from perdure.events.entry import Entry
from perdure.events.event import AnyEvent
from perdure.storage.errors import Damaged, Missing, explain_read_only
from perdure.storage.log.state import read_answer, read_state
from perdure.storage.noted_values import load_session_state

T = TypeVar("T")

UPDATE_TIMEOUT = 60.0
"""Seconds for a worker to answer an update."""


class Conversation:
    """A conversation: it sends through Temporal, and reads its log without worker or server.

    Every method that sends, except `start`, raises NotFound, Conflict if the conversation is
    closed, and Unreachable. Each but `pause` starts the workflow again if it has ended. Those that
    wait for an answer also raise Invalid if it refuses, and TimedOut if no worker takes them.
    """

    def __init__(self, workflow: ConversationWorkflow) -> None:
        self.workflow = workflow
        self.log = workflow.log
        self.id = workflow.log.conversation_id
        self._sent_id: str | None = None
        self._sent_after: int | None = None
        self._outage = Outage()

    @property
    def workflow_id(self) -> str:
        return self.workflow.workflow_id

    @property
    def handle(self) -> WorkflowHandle[object, ConversationStatus]:
        return self.workflow.handle

    async def start(
        self, text: str, spec: Agent, message_id: str | None = None, images: Sequence[Image] = ()
    ) -> None:
        """Start the conversation with a message; Temporal has it when this returns.

        Raises Unreachable, and Invalid, also for a budget in dollars where a model has no price:
        neither its own nor one that litellm lists here, where the program runs.
        """
        if spec.limits.max_budget is not None:
            from perdure.models.budget import PROGRAM_HINT, check_budget  # slow

            await asyncio.to_thread(check_budget, spec, PROGRAM_HINT)
        message, blobs = make_message(text, message_id, images)
        await store_images(self.log, blobs)
        self._sent_id, self._sent_after = message.message_id, -1
        await self.workflow.signal_with_start("send_message", [message], spec, text)

    async def send(
        self, text: str, message_id: str | None = None, images: Sequence[Image] = ()
    ) -> None:
        """Send a message. Raises Invalid too.

        `images` are http addresses, files, bytes, or `data:image/…` with the image itself.
        """
        message, title = await self._prepare_message(text, message_id, images)
        await self.workflow.signal_with_start("send_message", [message], title=title)

    async def submit(
        self,
        text: str,
        message_id: str | None = None,
        max_wait: float = UPDATE_TIMEOUT,
        images: Sequence[Image] = (),
    ) -> RecordedMessage:
        """Send a message, and wait until it is in the log.

        Raises what `send` raises, and TimedOut after `max_wait` seconds: the message may still
        arrive then.
        """
        message, title = await self._prepare_message(text, message_id, images)
        return await self.workflow.update_with_start(
            "submit_message", message, RecordedMessage, max_wait, title
        )

    async def _prepare_message(
        self, text: str, message_id: str | None, images: Sequence[Image]
    ) -> tuple[UserMessage, str | None]:
        """Return a message to send now, and the title of the conversation."""
        message, blobs = make_message(text, message_id, images)
        state = await self.require_open()
        await store_images(self.log, blobs)
        self._sent_id, self._sent_after = message.message_id, state.next_seq - 1
        return message, state.title

    async def state(self) -> State:
        """Fold the log into its state. Raises NotFound."""
        state = await read_state(self.log)
        if state.next_seq == 0:
            raise NotFound.for_conversation(self.id)
        return state

    async def status(self) -> ConversationStatus:
        """Query the workflow for its status; read it from the log if the workflow has ended.

        Raises NotFound, StoreError, and Unreachable if neither Temporal nor the log knows of it.
        """
        status, trouble = await asyncio.gather(self.workflow.query_status(), self._diagnose())
        if status is None or (trouble is not None and trouble.is_over):
            status = await self._read_logged_status()  # which a failed workflow may not have read
        if trouble is None or (trouble.cause == ENDED_CAUSE and status.status != "running"):
            return status
        return status.model_copy(update={"trouble": trouble.sentence})

    async def diagnose(self, max_silence: float = MAX_SILENCE) -> Trouble | None:
        """Find what blocks the conversation, such as a step silent for `max_silence` seconds."""
        trouble = await self._diagnose(max_silence)
        return None if trouble and trouble.is_over else trouble

    async def _diagnose(self, max_silence: float = MAX_SILENCE) -> Trouble | None:
        try:
            return await diagnose_workflow(self.workflow, DiagnosisOptions(max_silence))
        except Unreachable as error:
            return temporal_unreachable(error)

    async def _read_logged_status(self) -> ConversationStatus:
        status = await read_logged_status(self.log)
        if status is None and not await self.workflow.is_running():
            raise NotFound.for_conversation(self.id)
        return status or build_status(self.id, State())

    async def exists(self) -> bool:
        """Tell whether it has been started, even if no worker has taken it up yet."""
        return await self.log.end() > 0 or await self.workflow.is_running()

    async def events(self, after: int = -1) -> AsyncIterator[Entry]:
        """Yield every log entry after slot `after`, and new ones as they are written, forever."""
        async for entry in self.log.tail(after):
            yield entry

    async def values(self) -> dict[str, Any]:
        """Read its noted state; keys of `user:` and `app:` are shared with other conversations."""
        return await load_session_state(self.log)

    def watch_running_steps(self) -> AsyncIterator[tuple[RunningStep, ...]]:
        """Yield the running steps and their text whenever they change, forever."""
        return watch_running_steps(self.workflow)

    async def turn(self) -> AsyncIterator[AnyEvent]:
        """Yield the events of the turn of the newest message, and end with that turn.

        The newest message is the last one that this object sent, else the last one that anybody
        did. A turn ends when the agent has answered, failed, reached a limit, or waits for a
        person; a message that anybody sends before belongs to it.
        """
        async for entry in (await self._turn()).entries():
            yield entry.event

    async def text(self) -> AsyncIterator[str]:
        """Yield the model's text of that turn piece by piece while it grows, and end with it."""
        async for piece in (await self._turn()).text(partial(list_running_steps, self.workflow)):
            yield piece

    async def result(self) -> TurnResult:
        """Wait for the end of that turn. Raises TurnFailed if it ended with an error."""
        state = await (await self._turn()).end()
        if state.status == "error":
            raise TurnFailed(state.reason or "The turn failed.", f"`perdure show {self.id}`")
        text = await read_answer(self.log, state)
        return TurnResult(self.id, state.status, state.reason, text, state.usage)

    async def wait_for_turn(self, message_id: str | None = None, after: int = -1) -> State:
        """Wait until the agent's turn is over, or waits for a person to confirm its actions.

        The turn is the one that the message `message_id` began, if it is given, and has an event
        after slot `after`. Raises Conflict if the workflow fails.
        """
        return await Turn(self.log, message_id, after, self._check_workflow).end()

    async def _turn(self) -> Turn:
        after, has_news = self._sent_after, self.workflow.has_news
        if after is None:
            after = max(-1, (await read_newest_state(self.log, has_news)).last_user_seq - 1)
        return Turn(self.log, self._sent_id, after, self._check_workflow, has_news)

    async def _check_workflow(self) -> None:
        """Raise Conflict if the workflow failed or vanished, Unreachable after a long outage."""
        try:
            description = await self.workflow.describe()
        except Unreachable as error:
            self._outage.bear(error, self.id)
            return
        self._outage.end()
        if is_running(description):
            return
        try:
            await self.handle.result()
        except RPCError as error:
            raise Unreachable(f"Temporal does not answer any more: {error.message}") from error
        except WorkflowFailureError as error:
            raise Conflict(f"The conversation's workflow failed: {error.cause}") from error

    async def pause(self) -> None:
        """Pause between two steps. Raises Conflict if no workflow is running, too."""
        await self.require_open()
        await self.workflow.signal("pause")

    async def resume(self) -> None:
        """Go on after a pause, an interrupt, an error or a limit."""
        await self._signal("resume")

    async def interrupt(self) -> None:
        """Stop the running model or tool call; the conversation waits for its user."""
        await self._signal("interrupt")

    async def condense(self) -> None:
        """Condense the view before the next model call."""
        await self._signal("condense")

    async def close(self) -> None:
        """End the conversation for good; its log stays."""
        await self._signal("close")

    async def respond(
        self, accept: bool, calls: Sequence[str] = (), through: int | None = None, reason: str = ""
    ) -> list[str]:
        """Accept or reject waiting actions, and return the ids of their calls.

        `calls` are call ids; alternatively `through` selects all actions up to that slot, so that
        nothing is accepted unseen. The model is shown the `reason` of a rejection.
        """
        response = {"accept": accept, "calls": list(calls), "through": through, "reason": reason}
        return await self._update("respond", response, list[str])

    async def configure(self, changes: Mapping[str, Any]) -> RecordedMessage:
        """Change fields of the spec (model, limits, tags …); return where that is recorded."""
        return await self._update("configure", dict(changes), RecordedMessage)

    async def note(
        self,
        title: str | None = None,
        tags: Sequence[str] | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        """Record metadata; `tags` replace the earlier ones, `state` is merged by key."""
        fields = {"title": title, "tags": tags, "state": state}
        changes = {name: value for name, value in fields.items() if value is not None}
        await self._update("note", changes, type(None))

    async def require_open(self) -> State:
        """Return the state of the log.

        Raises NotFound, and Conflict if the conversation is closed or an event that the state needs
        is damaged. The worker that opens the conversation again checks the rest of the log.
        """
        try:
            state = await read_state(self.log)
        except (Missing, Damaged) as error:
            raise Conflict(explain_read_only(self.id, error)) from error
        if state.next_seq == 0 and not await self.workflow.is_running():
            raise NotFound.for_conversation(self.id)
        if state.status == "closed":
            hint = "Start another one with `perdure run`."
            raise Conflict(f"The conversation {self.id} is closed.", hint)
        return state

    async def _signal(self, signal: str) -> None:
        state = await self.require_open()
        await self.workflow.signal_with_start(signal, [], title=state.title)

    async def _update(self, name: str, value: Any, result: type[T]) -> T:
        title = (await self.require_open()).title
        return await self.workflow.update_with_start(name, value, result, UPDATE_TIMEOUT, title)
