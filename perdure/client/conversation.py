"""The handle of one conversation, for programs."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, TypeVar

from temporalio.client import WorkflowHandle

from perdure.agent.loop.inbox import StateNote, UserMessage
from perdure.agent.loop.start import ConversationStatus, RecordedMessage, RecordedSignal
from perdure.agent.loop.state import State
from perdure.agent.spec import Agent
from perdure.api.conversations import Conversation as Description
from perdure.client import sharing
from perdure.client.access import require_owner
from perdure.client.diagnosis.diagnose import MAX_SILENCE
from perdure.client.file_changes import WorkspaceChanges, read_workspace_changes
from perdure.client.images import Image
from perdure.client.lists.describe import describe_conversation
from perdure.client.live import list_running_steps, watch_running_steps
from perdure.client.logged_conversation import LoggedConversation
from perdure.client.open_state import require_open
from perdure.client.outage import check_workflow
from perdure.client.patience import Outage
from perdure.client.preparation import prepare_message, prepare_start
from perdure.client.recording import RecordedEvents
from perdure.client.repetition import (
    is_answer_awaited,
    is_response_awaited,
    repeat_while_behind,
)
from perdure.client.running_step import RunningStep
from perdure.client.signals import build_signal
from perdure.client.status import find_trouble, read_status
from perdure.client.statuses import watch_logged_statuses
from perdure.client.trouble import Trouble
from perdure.client.workflow import ConversationWorkflow
from perdure.errors import Conflict, Forbidden, NotFound
from perdure.storage.conversations import hide_conversation
from perdure.storage.granted_store import GrantedStore
from perdure.storage.grants import Access, Grant, Shareable, list_grants
from perdure.storage.log.event_log import EventLog
from perdure.storage.noted_values import SessionValues, load_session_state, load_session_values

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
        replay: RecordedEvents | None = None,
    ) -> None:
        """Start the conversation with a message; Temporal has it when this returns.

        Without a text and images the agent waits for its first message. The answers in the events
        of `replay` come before those of the model, and its first message is sent where there is no
        text: tools are called anew. Raises Unreachable, and Invalid, also for a budget in dollars
        where a model has no price: neither its own nor one that litellm lists here, where the
        program runs.
        """
        spec, message = await prepare_start(self.log, spec, text, message_id, images, replay)
        notes = (StateNote(key="title", value=title),) if title else ()
        if message is None:
            await self.workflow.begin(spec, notes)
            return
        self._sent_id, self._sent_after = message.message_id, -1
        title = title or message.text
        await self.workflow.signal_with_start("send_message", [message], spec, title, notes)

    async def send(
        self,
        text: str,
        message_id: str | None = None,
        images: Sequence[Image] = (),
        reopen: bool = False,
        run: bool = True,
    ) -> None:
        """Send a message; with `reopen` it opens a closed conversation again.

        Without `run` it is only recorded: an agent at rest sees it once `resume`, or another
        message, makes it run.
        `images` are http addresses, files, bytes, or `data:image/…` with the image itself. Raises
        Invalid too, also for images that the model would not be sent.
        """
        message, title = await self._prepare_message(text, message_id, images, reopen, run)
        await self.workflow.signal_with_start("send_message", [message], title=title)

    async def submit(
        self,
        text: str,
        message_id: str | None = None,
        max_wait: float = UPDATE_TIMEOUT,
        images: Sequence[Image] = (),
        reopen: bool = False,
        run: bool = True,
    ) -> RecordedMessage:
        """Send a message, and wait until it is in the log; `reopen` and `run` are as for
        `send`.

        Raises what `send` raises, and TimedOut after `max_wait` seconds: the message may still
        arrive then.
        """
        message, title = await self._prepare_message(text, message_id, images, reopen, run)
        return await self.workflow.update_with_start(
            "submit_message", message, RecordedMessage, max_wait, title
        )

    async def _prepare_message(
        self,
        text: str,
        message_id: str | None,
        images: Sequence[Image],
        reopen: bool,
        run: bool,
    ) -> tuple[UserMessage, str | None]:
        """Return a message to send now, and the title of the conversation."""
        message, state = await prepare_message(
            self.log, self.workflow.is_running, text, message_id, images, reopen
        )
        message = message.model_copy(update={"run": run})
        self._sent_id, self._sent_after = message.message_id, state.next_seq - 1
        return message, state.title

    async def status(self) -> ConversationStatus:
        """Query the workflow for its status; read it from the log if the workflow has ended.

        Raises NotFound, StoreError, and Unreachable if neither Temporal nor the log knows of it.
        """
        return await read_status(self.workflow)

    async def diagnose(self, max_silence: float = MAX_SILENCE) -> Trouble | None:
        """Find what blocks the conversation, such as a step silent for `max_silence` seconds."""
        trouble = await find_trouble(self.workflow, max_silence)
        return None if trouble and trouble.is_over else trouble

    async def exists(self) -> bool:
        """Tell whether it has been started, even if no worker has taken it up yet."""
        return await self.log.end() > 0 or await self.workflow.is_running()

    async def values(self) -> dict[str, Any]:
        """Read its noted state; keys of `user:` and `app:` are shared with other conversations."""
        return await load_session_state(self.log)

    async def read_values(self) -> SessionValues:
        """Read its noted state with the versions of shared values, for `note` to replace them."""
        return await load_session_values(self.log)

    async def changes(self, after: int = -1) -> WorkspaceChanges:
        """Compare the files of the workspace after slot `after` with the newest ones."""
        return await read_workspace_changes(self.log, after)

    def watch_running_steps(self) -> AsyncIterator[tuple[RunningStep, ...]]:
        """Yield the running steps and their text whenever they change, forever."""
        return watch_running_steps(self.workflow)

    def _watch_statuses(self) -> AsyncGenerator[ConversationStatus, None]:
        return watch_logged_statuses(self.log, self.watch_running_steps())

    async def text(self) -> AsyncIterator[str]:
        """Yield the model's text of that turn piece by piece while it grows, and end with it."""
        turn = await self._turn()
        async with aclosing(turn.text(partial(list_running_steps, self.workflow))) as pieces:
            async for piece in pieces:
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
        """Close the conversation; its log stays, and `send` may open it again."""
        await self._signal("close")

    async def delete(self) -> None:
        """Close the conversation and hide it from lists; its log stays.

        Raises NotFound, and Forbidden for another user's. `perdure rm` deletes what is stored.
        """
        of = await self._require_own()
        # Before it ends: what is hidden by then is not ingested.
        await hide_conversation(self.log.store, of.owner, of.id)
        with suppress(Conflict):  # closed already, or so damaged that it cannot go on
            await self.close()

    async def describe(self, with_state: bool = True) -> Description:
        """Describe it as lists do: its status, application, agent, times and session state.

        Raises NotFound, Unreachable, StoreError.
        """
        status = await self.status()
        return await describe_conversation(
            self.log, status, await self.values() if with_state else None
        )

    async def respond(
        self,
        accept: bool,
        calls: Sequence[str] = (),
        through: int | None = None,
        reason: str = "",
        run: bool = True,
    ) -> list[str]:
        """Accept or reject waiting actions, and return the ids of their calls.

        `calls` are call ids; alternatively `through` selects all actions up to that slot, so that
        nothing is accepted unseen. The model is shown the `reason` of a rejection;
        without `run` the agent rests after it, until `resume` or a message.
        """
        response = {"accept": accept, "calls": list(calls), "through": through, "reason": reason}
        response |= {} if run else {"run": False}  # workers of before know no `run`
        respond = partial(self._update, "respond", response, list[str])
        return await repeat_while_behind(
            respond, self.log, lambda state: is_response_awaited(state, calls, through)
        )

    async def signal(
        self, name: str, data: Any = None, signal_id: str | None = None
    ) -> RecordedSignal:
        """Send a signal by its name to the agent, and wait until it is in the log.

        The agent's wait for it ends with `data`, JSON of 32 KiB at most; without such a wait it is
        kept for the next one, and 50 at most are: a further one raises Conflict. The same
        `signal_id` again is recorded once.
        """
        sent = build_signal(name, data, signal_id)
        return await self._update("submit_signal", sent, RecordedSignal)

    async def answer(
        self, text: str | None = None, choice: str | None = None, call: str | None = None
    ) -> str:
        """Answer the question that the agent waits with, and return the answer as recorded.

        It is one of the question's choices, or a text in other words; `call` is the id of the tool
        call that asks. Raises Invalid where no question waits.
        """
        answer = {"text": text, "choice": choice, "call": call}
        send = partial(self._update, "answer", answer, str)
        return await repeat_while_behind(
            send, self.log, lambda state: is_answer_awaited(state, choice, call)
        )

    async def configure(self, changes: Mapping[str, Any]) -> RecordedMessage:
        """Change fields of the spec (model, limits, tags …); return where that is recorded."""
        return await self._update("configure", dict(changes), RecordedMessage)

    async def note(
        self,
        title: str | None = None,
        tags: Sequence[str] | None = None,
        state: Mapping[str, Any] | None = None,
        versions: Mapping[str, str] | None = None,
    ) -> None:
        """Record metadata; `tags` replace the earlier ones, `state` is merged by key.

        Keys of `user:` and `app:` are shared with other conversations; None deletes a value. A
        shared value that is no longer of the version in `versions`, as `read_values` has it, is not
        replaced: that raises Conflict. Raises Forbidden for `app:` values where the user may not
        change them.
        """
        fields = {"title": title, "tags": tags, "state": state, "versions": versions}
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
