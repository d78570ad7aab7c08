"""A discussion behind a gateway: its log, its status and its control."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from dataclasses import dataclass
from random import uniform
from time import monotonic
from typing import TypeVar

import httpx2
from pydantic import BaseModel, ValidationError

from perdure.agent.discussion.log_state import is_over
from perdure.agent.discussion.spec import DiscussionKey, DiscussionSpec
from perdure.agent.discussion.state import DiscussionStatus
from perdure.agent.discussion.steps import speaker_conversation_id
from perdure.api import discussions as api
from perdure.api.frames import ErrorFrame
from perdure.api.problem import Problem
from perdure.client.http.address import quote_segment
from perdure.client.http.connection import Connection
from perdure.client.http.log import HttpLog
from perdure.client.http.problems import build_body, to_error
from perdure.client.http.resource import HttpResource
from perdure.errors import Forbidden, Invalid, NotFound, PerdureError, TimedOut
from perdure.events.discussion import DiscussionEvent
from perdure.storage.grants import Access, Grant

T = TypeVar("T")

POLL_INTERVAL = 1.0
"""Seconds between two questions whether a discussion is over."""

MAX_PAGE = 100

FIRST_PAUSE, MAX_PAUSE = 0.1, 2.0
"""Seconds between two attempts to follow it again."""

ENDED = ("finished", "closed", "failed")
"""The statuses of a discussion that is over."""

FINAL_ERRORS = (Forbidden, Invalid, NotFound)
"""Errors that no other attempt mends."""


@dataclass(frozen=True)
class HttpDiscussion:
    """A discussion behind a gateway, with the methods of `DiscussionHandle`.

    What a person contributes has an id, so that it is sent again after a lost answer, and recorded
    once. Methods raise what those of `DiscussionHandle` raise for the same reason, and Unreachable
    if the gateway does not answer.
    """

    connection: Connection
    owner: str
    id: str
    shared_by: str | None = None
    """The user whose discussion it is, if that is another one."""
    attached: bool = False

    @property
    def path(self) -> str:
        return f"/v1/discussions/{quote_segment(self.id)}"

    @property
    def _resource(self) -> HttpResource:
        return HttpResource(self.connection, self.path, self.shared_by)

    def conversation_id(self, speaker: str) -> str:
        """Return the id of the conversation in which an agent, or `moderator`, takes its turns."""
        key = DiscussionKey(user_id=self.owner, session_id=self.id)
        return speaker_conversation_id(key, speaker)

    def open_log(self, speaker: str) -> HttpLog:
        """Open the log of the conversation in which an agent takes its turns."""
        conversation_id = self.conversation_id(speaker)
        return HttpLog(self.connection, self.owner, conversation_id, self.shared_by)

    async def spec(self) -> DiscussionSpec:
        """Load the spec."""
        return await self._resource.get("/spec", DiscussionSpec)

    async def status(self, max_wait: float = 20.0) -> DiscussionStatus:
        """Ask for the status, or for the result if it is over."""
        return (await self._limit(self._resource.get("", api.Discussion), max_wait)).status

    async def result(self) -> DiscussionStatus:
        """Wait for the end; the status has the last summary, the tally and the log's address."""
        while True:
            status = await self.status(60.0)
            if status.status in ENDED:
                return status
            await asyncio.sleep(POLL_INTERVAL)

    async def events(self, after: int = 0) -> AsyncIterator[DiscussionEvent]:
        """Yield every event behind a sequence, pruned ones too, until the discussion is over.

        The connection is made again where it is lost. Raises Unreachable after an outage.
        """
        pause, answered = FIRST_PAUSE, monotonic()
        while True:
            failure: Exception | None = None
            try:
                async with contextlib.aclosing(self._follow(after)) as frames:
                    async for frame in frames:
                        pause, answered = FIRST_PAUSE, monotonic()
                        if isinstance(frame, api.DiscussionEventFrame):
                            event = DiscussionEvent.model_validate(frame.event)
                            after = event.sequence
                            yield event
                            if is_over(event):
                                return
                        elif _has_failed(frame, after):
                            return
            except (PerdureError, httpx2.HTTPError) as error:
                failure = error
            is_lost = monotonic() - answered > self.connection.patience
            if isinstance(failure, FINAL_ERRORS) or (failure is not None and is_lost):
                raise self.connection.explain(failure)
            await asyncio.sleep(uniform(pause / 2, pause))
            pause = min(MAX_PAUSE, 2 * pause)

    async def _follow(self, after: int) -> AsyncGenerator[api.DiscussionFrame, None]:
        """Yield the frames of one connection. Raises what an `error` frame says."""
        query = {"after": after, "owner": self.shared_by}
        async with self.connection.stream(f"{self.path}/stream", query) as source:
            async for sent in source:
                if not sent.data:
                    continue
                try:
                    frame = api.DISCUSSION_FRAME.validate_json(sent.data, extra="ignore")
                except ValidationError:  # a kind of frame that a newer gateway has
                    continue
                if isinstance(frame, ErrorFrame):
                    problem = Problem(title="", status=503, code=frame.code, detail=frame.detail)
                    raise to_error(problem)
                yield frame

    async def stored_events(self, after: int = 0) -> AsyncIterator[DiscussionEvent]:
        """Yield every event that there is now, pruned ones too."""
        end = None
        while end is None or after < end:
            page = await self._resource.get(
                "/events", api.DiscussionEvents, after=after, limit=MAX_PAGE
            )
            end = page.end if end is None else end
            if not page.items:
                return
            for item in page.items:
                event = DiscussionEvent.model_validate(item)
                after = event.sequence
                yield event

    async def say(
        self,
        text: str,
        speaker: str | None = None,
        reply_to: str | None = None,
        contribution_id: str | None = None,
        max_wait: float = 20.0,
    ) -> int:
        """Say something in one's own name, and return its place; see `DiscussionHandle.say`."""
        name = contribution_id or str(uuid.uuid4())
        body = build_body(api.Say, text=text, reply_to=reply_to, speaker=speaker, id=name)
        return await self._contribute("/say", body, max_wait)

    async def vote(
        self,
        ballot: str,
        speaker: str | None = None,
        reason: str | None = None,
        contribution_id: str | None = None,
        max_wait: float = 20.0,
    ) -> int:
        """Cast a ballot in the present or next vote of the phase. Raises as `say`."""
        name = contribution_id or str(uuid.uuid4())
        body = build_body(api.Vote, ballot=ballot, reason=reason, speaker=speaker, id=name)
        return await self._contribute("/vote", body, max_wait)

    async def pause(self) -> None:
        """Pause between two steps, and pause the agents that speak. Raises as `close`."""
        await self._resource.post("/pause", type(None), repeatable=True)

    async def resume(self) -> None:
        """Go on. Raises as `close`."""
        await self._resource.post("/resume", type(None), repeatable=True)

    async def close(self) -> None:
        """End it for good; its log stays. Raises Conflict if it does not run."""
        await self._resource.post("/close", type(None))

    async def grant(self, user_id: str, access: Access = "read") -> None:
        """Let another user read the discussion and its agents' conversations, or also take part.

        Raises NotFound, Forbidden for another user's discussion, and Invalid for a bad user id.
        """
        await self._resource.grant(user_id, access)

    async def revoke(self, user_id: str) -> None:
        """Take the grant of a user back, at once. Raises as `grant`."""
        await self._resource.revoke(user_id)

    async def grants(self) -> list[Grant]:
        """List the grants to other users. Raises NotFound, and Forbidden for another's."""
        return await self._resource.list_grants()

    async def _contribute(self, path: str, body: BaseModel, max_wait: float) -> int:
        request = self._resource.post(
            path, api.Contributed, body, repeatable=True, max_wait=max_wait
        )
        return (await self._limit(request, max_wait)).sequence

    async def _limit(self, request: Awaitable[T], max_wait: float) -> T:
        """Wait for an answer. Raises TimedOut."""
        try:
            async with asyncio.timeout(max_wait):
                return await request
        except TimeoutError as error:
            raise TimedOut(f"The gateway gave no answer within {max_wait:g} s.") from error


def _has_failed(frame: api.DiscussionFrame, after: int) -> bool:
    """Tell whether the discussion has ended without the event that says so."""
    if not isinstance(frame, api.DiscussionStatusFrame):
        return False
    return frame.status.status == "failed" and frame.status.events <= after
