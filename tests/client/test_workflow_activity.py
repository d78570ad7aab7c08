"""When conversations were last at work, by few and small questions to Temporal."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from temporalio.common import SearchAttributePair, TypedSearchAttributes
from temporalio.service import RPCError, RPCStatusCode

from perdure.client.lists.activity import MAX_AGE, MAX_DELAY, WorkflowActivity
from perdure.temporal.names import conversation_workflow_id
from perdure.temporal.search_attributes import LAST_ACTIVITY

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)


@dataclass
class Temporal:
    """A server's list of workflows: the last activity of each, and the questions about them."""

    moments: dict[str, datetime] = field(default_factory=dict)
    queries: list[str] = field(default_factory=list)
    is_away: bool = False
    may_answer: asyncio.Event | None = None

    async def list_workflows(self, query: str, **_: Any) -> AsyncIterator[Any]:
        self.queries.append(query)
        if self.may_answer is not None:
            await self.may_answer.wait()
        if self.is_away:
            raise RPCError("away", RPCStatusCode.UNAVAILABLE, b"")
        for workflow_id, moment in self.moments.items():
            attributes = TypedSearchAttributes([SearchAttributePair(LAST_ACTIVITY, moment)])
            yield SimpleNamespace(id=workflow_id, typed_search_attributes=attributes)


class Asker:
    """A user who asks again and again, each time when the last answer is too old."""

    user_id = "anna"

    def __init__(self, patience: float | None = None) -> None:
        self.temporal: Any = Temporal()
        self.time = 0.0
        self.activity = WorkflowActivity(lambda: self.time, patience)

    async def has_search_attributes(self) -> bool:
        return True

    async def ask(self, **moments: datetime) -> dict[str, datetime]:
        self.time += MAX_AGE
        self.temporal.moments = {
            conversation_workflow_id("anna", name): moment for name, moment in moments.items()
        }
        return await self.activity.load(self)

    def since(self) -> str | None:
        """Return the moment since which the last question was about what is new."""
        return (
            self.temporal.queries[-1].partition("PerdureLastActivity >= '")[2].rstrip("'") or None
        )


async def test_temporal_is_asked_for_all_once_and_then_for_what_is_new() -> None:
    asker = Asker()
    assert await asker.ask(one=NOON) == {"one": NOON}
    assert asker.since() is None
    later = NOON + timedelta(hours=1)
    assert await asker.ask(two=later) == {"one": NOON, "two": later}
    assert asker.since() == (NOON - MAX_DELAY).isoformat()
    assert await asker.ask(one=later) == {"one": later, "two": later}
    assert asker.since() == (later - MAX_DELAY).isoformat()


async def test_a_late_answer_takes_nothing_back() -> None:
    asker = Asker()
    await asker.ask(one=NOON)
    assert await asker.ask(one=NOON - timedelta(seconds=5)) == {"one": NOON}


async def test_a_conversation_begun_by_a_clock_that_is_ahead_hides_no_other() -> None:
    asker = Asker()
    await asker.ask(one=datetime.now(UTC) + timedelta(days=1))
    before = datetime.now(UTC)
    await asker.ask(two=before)
    since = asker.since()
    assert since is not None
    assert datetime.fromisoformat(since) <= before - MAX_DELAY


async def test_an_outage_leaves_the_order_and_the_next_question_covers_it() -> None:
    asker = Asker()
    await asker.ask(one=NOON)
    asker.temporal.is_away = True
    assert await asker.ask() == {"one": NOON}
    asker.temporal.is_away = False
    later = NOON + timedelta(hours=1)
    assert await asker.ask(two=later) == {"one": NOON, "two": later}
    assert asker.since() == (NOON - MAX_DELAY).isoformat()


async def test_an_answer_is_used_for_some_seconds() -> None:
    asker = Asker()
    await asker.ask(one=NOON)
    await asker.activity.load(asker)
    assert len(asker.temporal.queries) == 1


async def test_a_process_that_stays_answers_with_what_it_knows_while_temporal_is_slow() -> None:
    asker = Asker(patience=0.01)
    assert await asker.ask(one=NOON) == {"one": NOON}
    asker.temporal.may_answer = asyncio.Event()
    assert await asker.ask(two=NOON) == {"one": NOON}
    assert await asker.ask(two=NOON) == {"one": NOON}
    assert len(asker.temporal.queries) == 2, "it is asked once at a time"
    asker.temporal.may_answer.set()
    await asyncio.sleep(0.05)
    assert await asker.activity.load(asker) == {"one": NOON, "two": NOON}


async def test_a_first_list_does_not_wait_either_and_a_question_ends_with_its_process() -> None:
    asker = Asker(patience=0.01)
    asker.temporal.may_answer = asyncio.Event()
    assert await asker.ask(one=NOON) == {}
    await asker.activity.close()
    asker.temporal.may_answer.set()
    assert await asker.ask(one=NOON) == {"one": NOON}
