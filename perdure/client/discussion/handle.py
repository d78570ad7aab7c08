"""The handle of a discussion: its log, its status and its control."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.service import RPCError, RPCStatusCode

from perdure.agent.discussion.log_state import is_over
from perdure.agent.discussion.spec import DiscussionKey, DiscussionSpec
from perdure.agent.discussion.state import DiscussionStatus
from perdure.agent.discussion.steps import speaker_conversation_id
from perdure.client.description import describe_workflow, is_running
from perdure.client.workflow import limit_update
from perdure.errors import Conflict, Invalid, NotFound, Unreachable
from perdure.events.discussion import DiscussionEvent
from perdure.storage.discussions.folder import load_spec
from perdure.storage.discussions.shared_log import SharedLog
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

    @property
    def id(self) -> str:
        return self.key.session_id

    @property
    def handle(self) -> WorkflowHandle[Any, DiscussionStatus]:
        """The handle of the workflow."""
        workflow_id = discussion_workflow_id(self.key.user_id, self.id)
        return self.temporal.get_workflow_handle(workflow_id, result_type=DiscussionStatus)

    async def spec(self) -> DiscussionSpec:
        """Load the spec."""
        spec = await load_spec(self.store, self.key.user_id, self.id)
        if spec is None:
            raise NotFound(f"There is no discussion {self.id}.", "`perdure discuss` starts one.")
        return spec

    def conversation_id(self, speaker: str) -> str:
        """Return the id of the conversation in which an agent, or `moderator`, takes its turns."""
        return speaker_conversation_id(self.key, speaker)

    async def status(self, max_wait: float = 20.0) -> DiscussionStatus:
        """Ask the workflow for its status, or for its result if it has ended.

        Raises TimedOut if no worker answers in time.
        """
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
            except RPCError as error:
                raise await self._to_client_error(error) from error

    async def is_running(self) -> bool:
        """Tell whether the workflow runs, or waits for a worker."""
        return is_running(await describe_workflow(self.temporal, self.handle.id))

    async def result(self) -> DiscussionStatus:
        """Wait for the end; the status has the last summary, the tally and the log's address."""
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
            state = await self._log.refresh()
            while after < state.end:
                silent = 0
                page = range(after + 1, min(after + MAX_PAGE, state.end) + 1)
                for event in await self._log.read(page):
                    after = event.sequence
                    yield event
                    if is_over(event):
                        return
            silent += 1
            if silent % STALLED_CHECKS == 0 and not await self.is_running():
                if (await self._log.refresh()).end == after:
                    return
                continue
            await asyncio.sleep(FOLLOW_INTERVAL)

    async def stored_events(self, after: int = 0) -> AsyncIterator[DiscussionEvent]:
        """Yield every event that there is now, pruned ones too."""
        await self.spec()
        end = (await self._log.refresh()).end
        for first in range(after + 1, end + 1, MAX_PAGE):
            for event in await self._log.read(range(first, min(first + MAX_PAGE, end + 1))):
                yield event

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
        `contribution_id`. Raises Invalid for a name that is taken, Conflict if it is over, and
        TimedOut, after which it may still be written.
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
        value = {**item, "speaker": speaker or self.key.user_id, "id": id_}
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

    async def _signal(self, name: str) -> None:
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
