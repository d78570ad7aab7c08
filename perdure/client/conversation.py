"""The handle of one conversation, for programs."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from temporalio.client import WorkflowHandle

from perdure.agent.loop.inbox import StateNote, UserMessage
from perdure.agent.loop.start import ConversationStatus, RecordedMessage, build_status
from perdure.agent.loop.state import State
from perdure.agent.spec import Agent
from perdure.client import sharing
from perdure.client.access import require_owner
from perdure.client.diagnosis.diagnose import MAX_SILENCE, DiagnosisOptions, diagnose_workflow
from perdure.client.file_changes import WorkspaceChanges, read_workspace_changes
from perdure.client.images import Image, make_message, store_images
from perdure.client.live import list_running_steps, watch_running_steps
from perdure.client.logged_conversation import LoggedConversation
from perdure.client.logged_status import read_logged_status
from perdure.client.open_state import require_open
from perdure.client.outage import check_workflow
from perdure.client.patience import Outage
from perdure.client.running_step import RunningStep
from perdure.client.trouble import ENDED_CAUSE, Trouble, temporal_unreachable
from perdure.client.workflow import ConversationWorkflow
from perdure.errors import Forbidden, NotFound, Unreachable
from perdure.storage.granted_store import GrantedStore
from perdure.storage.grants import Access, Grant, Shareable, list_grants
from perdure.storage.log.event_log import EventLog
from perdure.storage.noted_values import load_session_state

T = TypeVar("T")

UPDATE_TIMEOUT = 60.0
"""Seconds for a worker to answer an update."""


class Conversation(LoggedConversation):
    """A conversation: it sends through Temporal, and reads its log without worker or server.

    Every method that sends, except `start`, raises NotFound, Conflict if the conversation is
    closed, and Unreachable. Each but `pause` starts the workflow again if it has ended. Those that
    wait for an answer also raise Invalid if it refuses, and TimedOut if no worker takes them.
    """

    log: EventLog

    def __init__(self, workflow: ConversationWorkflow) -> None:
        self.workflow = workflow
        self.log = workflow.log
        self.id = workflow.log.conversation_id
        self._outage = Outage()

    @property
    def workflow_id(self) -> str:
        return self.workflow.workflow_id

    @property
    def handle(self) -> WorkflowHandle[object, ConversationStatus]:
        """The handle of the workflow. Raises Forbidden for another user's conversation."""
        if isinstance(self.log.store, GrantedStore):
            raise Forbidden(f"Only {self.log.user_id} has the handle of this workflow.")
        return self.workflow.handle

    async def start(
        self,
        text: str | None,
        spec: Agent,
        message_id: str | None = None,
        images: Sequence[Image] = (),
        title: str | None = None,
    ) -> None:
        """Start the conversation with a message; Temporal has it when this returns.

        Without a text and images the agent waits for its first message. Raises Unreachable, and
        Invalid, also for a budget in dollars where a model has no price: neither its own nor one
        that litellm lists here, where the program runs.
        """
        if spec.limits.max_budget is not None:
            from perdure.models.budget import PROGRAM_HINT, check_budget  # slow

            await asyncio.to_thread(check_budget, spec, PROGRAM_HINT)
        notes = (StateNote(key="title", value=title),) if title else ()
        if text is None and not images:
            await self.workflow.begin(spec, notes)
            return
        message, blobs = make_message(text or "", message_id, images)
        await store_images(self.log, blobs)
        self._sent_id, self._sent_after = message.message_id, -1
        await self.workflow.signal_with_start("send_message", [message], spec, title or text, notes)

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

    async def values(self) -> dict[str, Any]:
        """Read its noted state; keys of `user:` and `app:` are shared with other conversations."""
        return await load_session_state(self.log)

    async def changes(self, after: int = -1) -> WorkspaceChanges:
        """Compare the files of the workspace after slot `after` with the newest ones."""
        return await read_workspace_changes(self.log, after)

    def watch_running_steps(self) -> AsyncIterator[tuple[RunningStep, ...]]:
        """Yield the running steps and their text whenever they change, forever."""
        return watch_running_steps(self.workflow)

    async def text(self) -> AsyncIterator[str]:
        """Yield the model's text of that turn piece by piece while it grows, and end with it."""
        async for piece in (await self._turn()).text(partial(list_running_steps, self.workflow)):
            yield piece

    async def _has_news(self, next_seq: int) -> bool | None:
        return await self.workflow.has_news(next_seq)

    async def _check_workflow(self) -> None:
        await check_workflow(self.workflow, self._outage)

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

    async def grant(self, user_id: str, access: Access = "read") -> None:
        """Let another user read the conversation, or also steer it; see `Client.conversation`.

        Raises NotFound, Forbidden for another user's conversation, and Invalid for a bad user id.
        """
        await sharing.grant(self.log.store, await self._require_own(), user_id, access)

    async def revoke(self, user_id: str) -> None:
        """Take the grant of a user back, at once. Raises as `grant`."""
        await sharing.revoke(self.log.store, await self._require_own(), user_id)

    async def grants(self) -> list[Grant]:
        """List the grants to other users. Raises NotFound, and Forbidden for another's."""
        return await list_grants(self.log.store, await self._require_own())

    async def _require_own(self) -> Shareable:
        """Return what is shared, which exists and is the client's own. Raises NotFound."""
        await require_owner(self.log.store)
        if not await self.exists():
            raise NotFound.for_conversation(self.id)
        return Shareable("conversation", self.log.user_id, self.id)

    async def require_open(self) -> State:
        """Return the state of the log.

        Raises NotFound, and Conflict if the conversation is closed or an event that the state needs
        is damaged. The worker that opens the conversation again checks the rest of the log.
        """
        return await require_open(self.log, self.workflow.is_running)

    async def _signal(self, signal: str) -> None:
        state = await self.require_open()
        await self.workflow.signal_with_start(signal, [], title=state.title)

    async def _update(self, name: str, value: Any, result: type[T]) -> T:
        title = (await self.require_open()).title
        return await self.workflow.update_with_start(name, value, result, UPDATE_TIMEOUT, title)
