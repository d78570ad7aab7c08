"""When the conversations of a user were last at work, as far as Temporal knows."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

import temporalio.client
from temporalio.client import WorkflowExecution
from temporalio.service import RPCError

from perdure.storage.cache import Cache
from perdure.temporal.names import conversation_id_of
from perdure.temporal.search_attributes import LAST_ACTIVITY

MAX_WORKFLOWS = 1000
"""The newest workflows of a user of which Temporal is asked."""

MAX_AGE = 3.0
"""Seconds for which Temporal's answer is used: it lists few times a second for all."""

MAX_DELAY = timedelta(minutes=1)
"""Time until Temporal lists what a workflow did: the same time is asked about again."""

MAX_CACHED_USERS = 1000


class ListClient(Protocol):
    """The part of the client of a user that a list needs."""

    user_id: str
    temporal: temporalio.client.Client

    async def has_search_attributes(self) -> bool: ...


@dataclass(frozen=True)
class _Answer:
    """The last activity of each conversation, by Temporal's answers up to the question of `time`.

    `clock` is the same instant by the clock that measures the age of the answer.
    """

    clock: float
    time: datetime
    moments: dict[str, datetime]

    def until(self) -> datetime | None:
        """Return the moment until which all is known; None where nothing is.

        Some clock may be ahead: this machine's, or that of one which began a conversation.
        """
        return min(self.time, max(self.moments.values())) if self.moments else None


class WorkflowActivity:
    """When the workflows of each user were last at work.

    `patience` is the time in seconds that a list waits for Temporal, if it is limited: what is
    known by then counts, and the answer is there for the next list.
    """

    def __init__(self, clock: Callable[[], float], patience: float | None = None) -> None:
        self._clock = clock
        self._patience = patience
        self._answers: Cache[str, _Answer] = Cache(MAX_CACHED_USERS)
        self._questions: dict[str, asyncio.Task[_Answer]] = {}

    async def load(self, client: ListClient) -> dict[str, datetime]:
        """Load when the newest workflows of a user were last at work, by conversation.

        Temporal takes half a second for 1,000: once they are known, it is asked for what is new.
        """
        user_id = client.user_id
        known = self._answers.get(user_id)
        if known is not None and self._clock() - known.clock < MAX_AGE:
            return known.moments
        if self._patience is None:
            return (await self._ask(client, known)).moments
        if (question := self._questions.get(user_id)) is None:
            question = asyncio.create_task(self._ask(client, known))
            self._questions[user_id] = question
            question.add_done_callback(lambda _: self._questions.pop(user_id))
        await asyncio.wait([question], timeout=self._patience)
        if question.done():
            return question.result().moments
        return known.moments if known is not None else {}

    async def close(self) -> None:
        """Give up what Temporal has not answered."""
        questions = list(self._questions.values())
        for question in questions:
            question.cancel()
        await asyncio.gather(*questions, return_exceptions=True)

    async def _ask(self, client: ListClient, known: _Answer | None) -> _Answer:
        answer = _Answer(self._clock(), datetime.now(UTC), dict(known.moments) if known else {})
        try:
            if await client.has_search_attributes():
                until = known.until() if known else None
                for name, moment in await _list_activity(client, until):
                    answer.moments[name] = max(moment, answer.moments.get(name, moment))
        except RPCError:  # the order is that of before
            answer = replace(answer, time=known.time if known else answer.time)
        self._answers.put(client.user_id, answer)
        return answer


async def _list_activity(client: ListClient, since: datetime | None) -> list[tuple[str, datetime]]:
    """List the newest workflows of a user, or those at work `since` a moment. Raises RPCError."""
    query = f"WorkflowType = 'Conversation' AND PerdureUser = '{client.user_id}'"
    if since is not None:
        query += f" AND PerdureLastActivity >= '{(since - MAX_DELAY).isoformat()}'"
    found = client.temporal.list_workflows(query, limit=MAX_WORKFLOWS)
    return [(conversation_id_of(each.id), _last_activity(each)) async for each in found]


def _last_activity(found: WorkflowExecution) -> datetime:
    moment: datetime | None = found.typed_search_attributes.get(LAST_ACTIVITY)
    return (moment or found.start_time).astimezone(UTC)
