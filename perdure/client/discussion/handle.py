"""The handle of a discussion: its log, its status and its control."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
)
from temporalio.service import RPCError, RPCStatusCode

from perdure.agent.discussion.log_state import is_over
from perdure.agent.discussion.spec import DiscussionKey, DiscussionSpec
from perdure.agent.discussion.state import DiscussionStatus
from perdure.agent.discussion.steps import speaker_conversation_id
from perdure.client import sharing
from perdure.client.access import require_access, require_owner
from perdure.client.description import describe_workflow, is_running
from perdure.client.discussion.logged_status import read_status
from perdure.client.workflow import limit_update
from perdure.errors import Conflict, Forbidden, Invalid, NotFound, Unreachable
from perdure.events.discussion import DiscussionEvent
from perdure.storage.discussions.folder import load_spec
from perdure.storage.discussions.shared_log import SharedLog
from perdure.storage.granted_store import GrantedStore
from perdure.storage.grants import Access, Grant, Shareable, list_grants
from perdure.storage.log.event_log import EventLog
from perdure.storage.store import Store
from perdure.temporal.names import discussion_workflow_id

FOLLOW_INTERVAL = 0.25
"""Seconds between two looks at the log."""

STALLED_CHECKS = 8
"""Looks without a new event after which Temporal is asked whether the workflow still runs."""

MAX_PAGE = 100


@dataclass(frozen=True)
class DiscussionHandle:
    """A discussion, whether it runs or not.

    Methods raise NotFound if there is none, Unreachable if Temporal does not answer, and
    StoreError.
    """

    temporal: Client
    store: Store
    key: DiscussionKey
    _log: SharedLog = field(repr=False)
    user_id: str = ""
    """The user who takes part and steers: the owner, or another by a grant."""
    attached: bool = False
    """The discussion was running already when `start` was called."""

    @property
    def id(self) -> str:
        return self.key.session_id

    @property
    def handle(self) -> WorkflowHandle[Any, DiscussionStatus]:
        """The handle of the workflow."""
        workflow_id = discussion_workflow_id(self.key.user_id, self.id)
        return self.temporal.get_workflow_handle(workflow_id, result_type=DiscussionStatus)

    @property
    def owner(self) -> str:
        """The user whose discussion it is."""
        return self.key.user_id

    async def spec(self) -> DiscussionSpec:
        """Load the spec."""
        spec = await load_spec(self.store, self.key.user_id, self.id)
        if spec is None:
            raise NotFound.for_discussion(self.id)
        return spec

    def conversation_id(self, speaker: str) -> str:
        """Return the id of the conversation in which an agent, or `moderator`, takes its turns."""
        return speaker_conversation_id(self.key, speaker)

    def open_log(self, speaker: str) -> EventLog:
        """Open the log of the conversation in which an agent takes its turns."""
        return EventLog(self.store, self.owner, self.conversation_id(speaker))

    async def status(self, max_wait: float = 20.0) -> DiscussionStatus:
        """Ask the workflow for its status, or for its result if it has ended.

        Raises TimedOut if no worker answers in time, and Unreachable if none can.
        """
        await require_access(self.store, "read")
        async with limit_update("question", max_wait, "Start a worker with `perdure worker`."):
            try:
                if await self.is_running():
                    status: DiscussionStatus = await self.handle.query(
                        "status", result_type=DiscussionStatus
                    )
                    return status
                return await self.handle.result()
            except WorkflowFailureError as error:
                return await self._failed(error)
            except WorkflowQueryFailedError as error:
                message = f"The workers do not know where the discussion stands: {error}"
                raise Unreachable(message, "Its events are in the store all the same.") from error
            except RPCError as error:
                raise await self._to_client_error(error) from error

    async def is_running(self) -> bool:
        """Tell whether the workflow runs, or waits for a worker."""
        return is_running(await describe_workflow(self.temporal, self.handle.id))

    async def result(self) -> DiscussionStatus:
        """Wait for the end; the status has the last summary, the tally and the log's address."""
        await require_access(self.store, "read")
        try:
            return await self.handle.result()
        except WorkflowFailureError as error:
            return await self._failed(error)
        except RPCError as error:
            raise await self._to_client_error(error) from error

    async def events(self, after: int = 0) -> AsyncIterator[DiscussionEvent]:
        """Yield every event behind a sequence, pruned ones too, until the discussion is over."""
        await self.spec()
        silent = 0
        while True:
            while page := await self.read(after):
                silent = 0
                for event in page:
                    after = event.sequence
                    yield event
                    if is_over(event):
                        return
            silent += 1
            if silent % STALLED_CHECKS == 0 and not await self.is_running():
                if not await self.read(after):
                    return
                continue
            await asyncio.sleep(FOLLOW_INTERVAL)

    async def stored_events(self, after: int = 0) -> AsyncIterator[DiscussionEvent]:
        """Yield every event that there is now, pruned ones too."""
        await self.spec()
        end = await self.end()
        while after < end and (page := await self.read(after)):
            for event in page:
                yield event
            after = page[-1].sequence

    async def read(self, after: int = 0, limit: int = MAX_PAGE) -> list[DiscussionEvent]:
        """Read the events that follow a sequence, pruned ones too, the first of them."""
        end = await self.end()
        return await self._log.read(range(after + 1, min(after + limit, end) + 1))

    async def end(self) -> int:
        """Return the sequence of the newest event; 0 if there is none."""
        return (await self._log.refresh()).end

    async def logged_status(self) -> DiscussionStatus:
        """Return what the log says of the status, without asking Temporal."""
        return await read_status(self._log)

    async def say(
        self,
        text: str,
        speaker: str | None = None,
        reply_to: str | None = None,
        contribution_id: str | None = None,
        max_wait: float = 20.0,
    ) -> int:
        """Say something in one's own name, and return its place in the log.

        The moderator is not asked. It is written between two steps, and once for each
        `contribution_id`. Raises Invalid for a name that is taken, Conflict if it is over,
        Forbidden for another name in another user's discussion, and TimedOut, after which it may
        still be written.
        """
        item = {"type": "SPEECH", "content": text, "reply_to": reply_to}
        return await self._contribute(item, speaker, contribution_id, max_wait)

    async def vote(
        self,
        ballot: str,
        speaker: str | None = None,
        reason: str | None = None,
        contribution_id: str | None = None,
        max_wait: float = 20.0,
    ) -> int:
        """Cast a ballot in the present or next vote of the phase. Raises as `say`."""
        item = {"type": "VOTE", "content": ballot, "reason": reason}
        return await self._contribute(item, speaker, contribution_id, max_wait)

    async def pause(self) -> None:
        """Pause between two steps, and pause the agents that speak. Raises as `close`."""
        await self._signal("pause")

    async def resume(self) -> None:
        """Go on. Raises as `close`."""
        await self._signal("resume")

    async def close(self) -> None:
        """End it for good; its log stays. Raises Conflict if it does not run."""
        await self._signal("close")

    async def _contribute(
        self, item: dict[str, Any], speaker: str | None, id_: str | None, max_wait: float
    ) -> int:
        await require_access(self.store, "write")
        if isinstance(self.store, GrantedStore) and speaker not in (None, self.user_id):
            raise Forbidden(f"In a discussion of {self.owner} you speak as {self.user_id} alone.")
        value = {**item, "speaker": speaker or self.user_id or self.owner, "id": id_}
        hint = "It is written after the turn that runs, unless the discussion is paused."
        try:
            async with limit_update("contribution", max_wait, hint):
                place: int = await self.handle.execute_update("contribute", value, result_type=int)
                return place
        except WorkflowUpdateFailedError as error:
            message = getattr(error.cause, "message", str(error.cause))
            if getattr(error.cause, "type", None) == "Closed":
                raise Conflict(message) from error
            raise Invalid(message) from error
        except RPCError as error:
            raise await self._to_client_error(error) from error

    async def grant(self, user_id: str, access: Access = "read") -> None:
        """Let another user read the discussion and its agents' conversations, or also take part.

        Raises NotFound, Forbidden for another user's discussion, and Invalid for a bad user id.
        """
        await sharing.grant(self.store, await self._require_own(), user_id, access)

    async def revoke(self, user_id: str) -> None:
        """Take the grant of a user back, at once. Raises as `grant`."""
        await sharing.revoke(self.store, await self._require_own(), user_id)

    async def grants(self) -> list[Grant]:
        """List the grants to other users. Raises NotFound, and Forbidden for another's."""
        return await list_grants(self.store, await self._require_own())

    async def _require_own(self) -> Shareable:
        """Return what is shared, which exists and is the client's own. Raises NotFound."""
        await require_owner(self.store)
        await self.spec()
        return Shareable("discussion", self.owner, self.id)

    async def _signal(self, name: str) -> None:
        await require_access(self.store, "write")
        try:
            await self.handle.signal(name)
        except RPCError as error:
            raise await self._to_client_error(error) from error

    async def _failed(self, error: WorkflowFailureError) -> DiscussionStatus:
        """Return the status of a discussion whose workflow failed or was stopped."""
        cause = error.cause
        while cause is not None and getattr(cause, "cause", None) is not None:
            cause = cause.cause  # type: ignore[attr-defined]
        state = await self._log.refresh()
        return DiscussionStatus(
            session_id=self.id,
            status="failed",
            reason=str(cause or error),
            events=state.end,
            log=self._log.prefix,
        )

    async def _to_client_error(self, error: RPCError) -> Conflict | NotFound | Unreachable:
        if error.status is not RPCStatusCode.NOT_FOUND:
            return Unreachable(f"Temporal did not take it: {error.message}")
        try:
            await self.spec()
        except NotFound as unknown:
            return unknown
        return Conflict(f"The discussion {self.id} is not running.")
