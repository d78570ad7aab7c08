"""The schedules of a user, which Temporal keeps."""

import zoneinfo
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Any, cast

import temporalio.client as temporal
from temporalio.api.workflowservice.v1 import ListScheduleMatchingTimesRequest
from temporalio.common import SearchAttributePair, TypedSearchAttributes
from temporalio.service import RPCError, RPCStatusCode

from perdure.agent.code import with_code
from perdure.agent.spec import Agent
from perdure.api.schedules import Overlap, Schedule, ScheduleDefinition
from perdure.client.agents.find_agent import find_agent
from perdure.client.client import Client
from perdure.client.http.client import HttpClient
from perdure.client.preparation import require_price
from perdure.client.schedules.describe import AGENT, DEFINITION, describe, describe_listed
from perdure.client.schedules.ids import check_schedule_name
from perdure.errors import Conflict, Invalid, NotFound, Unreachable
from perdure.storage.user_agents import UserAgents
from perdure.temporal.connect import DOCTOR_HINT
from perdure.temporal.fairness import user_priority
from perdure.temporal.names import firing_workflow_id, schedule_id, schedule_name_of
from perdure.temporal.schedules import FiringOrder
from perdure.temporal.search_attributes import USER
from perdure.temporal.timeouts import TASK_TIMEOUT

TAG_PREFIX = "schedule:"
"""The beginning of the tag by which the conversations of a schedule are found, before its name."""

YEARS = range(1971, 2100)
"""Years of a moment that a backfill may name."""

MAX_BACKFILL = 1000
"""Times that a backfill has fewer of: Temporal counts no further."""

NO_TIMES = "It never begins: no such time is ever to come."


@dataclass(frozen=True)
class Schedules:
    """The schedules of one user: Temporal begins a turn at each of their times.

    A time that comes while all workers are gone waits for one; of those that come while Temporal
    itself is gone, `catch_up` says which are made up for.
    """

    client: Client

    @classmethod
    def from_client(cls, client: Client) -> "Schedules":
        """Return the schedules of a client's user; those of a gateway's are `HttpSchedules`."""
        if isinstance(client, HttpClient):
            from perdure.client.schedules.http_schedules import HttpSchedules

            return cast("Schedules", HttpSchedules(client))
        return cls(client)

    async def create(
        self,
        name: str,
        definition: ScheduleDefinition,
        agent: Agent | Mapping[str, Any] | str | None = None,
    ) -> Schedule:
        """Create a schedule: each time begins a conversation of this agent, as it is now.

        Without an agent the definition has the conversation to which the message is sent, which is
        one's own and exists. Raises Invalid, also for times that never come; NotFound; Conflict for
        a name that there is; Unreachable.
        """
        check_time_zone(definition.time_zone)
        order = await self._build_order(check_schedule_name(name), definition, agent)
        try:
            with translate_errors(name):
                await self.client.temporal.create_schedule(
                    schedule_id(self.client.user_id, name),
                    self._build_schedule(order, definition),
                    memo={DEFINITION: definition, AGENT: _name_agent(order.agent)},
                    search_attributes=await self._attributes(),
                )
        except temporal.ScheduleAlreadyRunningError as error:
            raise Conflict(
                f"There is a schedule {name} already.",
                f"Delete it first (`perdure schedule delete {name}`), or use another name.",
            ) from error
        made = await self.get(name)
        if not made.next_times:
            await self.delete(name)
            raise Invalid(NO_TIMES, "Change the times: `0 8 * * 1-5` is each weekday at 8.")
        return made

    async def list_schedules(self) -> list[Schedule]:
        """List the schedules of the user, by name. Raises Unreachable."""
        return sorted([it async for it in self._list()], key=lambda schedule: schedule.name)

    async def get(self, name: str) -> Schedule:
        """Describe a schedule. Raises NotFound, Invalid, Unreachable."""
        with translate_errors(name):
            return await describe(self.client.user_id, name, await self._handle(name).describe())

    async def pause(self, name: str, note: str = "") -> None:
        """Let no time of the schedule begin anything. Raises NotFound, Invalid, Unreachable."""
        with translate_errors(name):
            await self._handle(name).pause(note=note or f"Paused by {self.client.user_id}")

    async def resume(self, name: str, note: str = "") -> None:
        """Let the times to come begin turns again. Raises NotFound, Invalid, Unreachable."""
        with translate_errors(name):
            await self._handle(name).unpause(note=note or f"Resumed by {self.client.user_id}")

    async def trigger(self, name: str) -> None:
        """Begin a turn now, as `overlap` allows. Raises NotFound, Invalid, Unreachable."""
        with translate_errors(name):
            await self._handle(name).trigger()

    async def backfill(
        self, name: str, since: str, until: str, overlap: Overlap = "buffer_all"
    ) -> None:
        """Begin now what the times between two moments would have begun.

        The moments are ISO dates and times, UTC where they name no zone. Raises NotFound, Invalid,
        Unreachable.
        """
        start, end = parse_moment(since), parse_moment(until)
        if start >= end:
            raise Invalid("The time to fill has to begin before it ends.", "Change the two times.")
        begin = start - timedelta(milliseconds=1)  # Temporal leaves the first moment itself out
        policy = temporal.ScheduleOverlapPolicy[overlap.upper()]
        with translate_errors(name):
            await self._check_number(name, begin, end)
            await self._handle(name).backfill(temporal.ScheduleBackfill(begin, end, policy))

    async def delete(self, name: str) -> None:
        """Delete a schedule; what it has begun goes on. Raises NotFound, Invalid, Unreachable."""
        with translate_errors(name):
            await self._handle(name).delete()

    async def _check_number(self, name: str, start: datetime, end: datetime) -> None:
        """Raise Invalid if there are more times between two moments than a backfill may have."""
        handle = self._handle(name)
        request = ListScheduleMatchingTimesRequest(
            namespace=self.client.temporal.namespace, schedule_id=handle.id
        )
        request.start_time.FromDatetime(start)
        request.end_time.FromDatetime(end)
        service = self.client.temporal.workflow_service
        found = await service.list_schedule_matching_times(request)
        if len(found.start_time) >= MAX_BACKFILL:
            message = f"There are {MAX_BACKFILL} times or more between these moments."
            raise Invalid(message, "Fill a shorter span.")

    def _handle(self, name: str) -> temporal.ScheduleHandle:
        own_id = schedule_id(self.client.user_id, check_schedule_name(name))
        return self.client.temporal.get_schedule_handle(own_id)

    async def _list(self) -> AsyncIterator[Schedule]:
        searchable = await self.client.has_search_attributes()
        query = f'{USER.name} = "{self.client.user_id}"' if searchable else None
        with translate_errors():
            async for listed in await self.client.temporal.list_schedules(query):
                name = schedule_name_of(self.client.user_id, listed.id)
                if name is not None:
                    yield await describe_listed(self.client.user_id, name, listed)

    async def _build_order(
        self,
        name: str,
        definition: ScheduleDefinition,
        agent: Agent | Mapping[str, Any] | str | None,
    ) -> FiringOrder:
        if (agent is None) == (definition.conversation_id is None):
            raise Invalid(
                "A schedule begins conversations of an agent, or sends to one that there is.",
                "Give an agent or a conversation.",
            )
        whole = None
        if agent is not None:
            own = UserAgents(self.client.store, self.client.user_id)
            whole = await find_agent(agent, self.client.settings, own)
            await require_price(whole)
            whole = with_code(whole, self.client.code_folder)
            whole = whole.model_copy(update={"tags": (*whole.tags, f"{TAG_PREFIX}{name}")})
        elif definition.conversation_id is not None:
            conversation = self.client.conversation(definition.conversation_id)
            if not await conversation.exists():
                raise NotFound.for_conversation(conversation.id)
        return FiringOrder(
            user_id=self.client.user_id,
            name=name,
            text=definition.text,
            agent=whole,
            conversation_id=definition.conversation_id,
            waits=definition.overlap != "allow_all",
        )

    def _build_schedule(
        self, order: FiringOrder, definition: ScheduleDefinition
    ) -> temporal.Schedule:
        every = definition.every
        intervals = [] if every is None else [timedelta(seconds=every)]
        return temporal.Schedule(
            action=temporal.ScheduleActionStartWorkflow(
                "Firing",
                order,
                id=firing_workflow_id(order.user_id, order.name),
                task_queue=self.client.task_queue,
                task_timeout=TASK_TIMEOUT,
                priority=user_priority(order.user_id),
                static_summary=f"{order.name}: {' '.join(order.text.split())}"[:200],
            ),
            spec=temporal.ScheduleSpec(
                cron_expressions=list(definition.cron),
                intervals=[temporal.ScheduleIntervalSpec(each) for each in intervals],
                time_zone_name=definition.time_zone,
                jitter=timedelta(seconds=definition.jitter) if definition.jitter else None,
            ),
            policy=temporal.SchedulePolicy(
                overlap=temporal.ScheduleOverlapPolicy[definition.overlap.upper()],
                catchup_window=timedelta(seconds=definition.catch_up),
            ),
        )

    async def _attributes(self) -> TypedSearchAttributes | None:
        if not await self.client.has_search_attributes():
            return None
        return TypedSearchAttributes([SearchAttributePair(USER, self.client.user_id)])


def check_time_zone(name: str) -> None:
    """Raise Invalid for what is no name of a time zone."""
    known = zoneinfo.available_timezones()
    if name not in known:
        close = get_close_matches(name, known, 1)
        hint = f"Did you mean {close[0]}?" if close else "Use a name such as Europe/Oslo."
        raise Invalid(f"There is no time zone {name!r}.", hint)


def parse_moment(text: str) -> datetime:
    """Parse an ISO date and time, of UTC where it names no zone. Raises Invalid."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.year not in YEARS:
            raise ValueError(f"the year {moment.year}")
    except ValueError as error:
        message = f"{text!r} is no date and time from {YEARS[0]} to {YEARS[-1]}."
        raise Invalid(message, "Write it like 2030-01-31T18:00.") from error
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


@contextmanager
def translate_errors(name: str | None = None) -> Iterator[None]:
    """Raise Invalid for times that Temporal refuses, NotFound, and else Unreachable."""
    try:
        yield
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND and name is not None:
            message = f"There is no schedule {name}."
            raise NotFound(message, "`perdure schedule ls` lists them.") from error
        if error.status is RPCStatusCode.INVALID_ARGUMENT:
            hint = "`0 8 * * 1-5` is each weekday at 8; `perdure schedule create --help` has more."
            raise Invalid(f"Temporal refuses the schedule: {error.message}.", hint) from error
        sentence = f"Temporal does not answer about schedules: {error.message}"
        raise Unreachable(sentence, DOCTOR_HINT) from error


def _name_agent(agent: Agent | None) -> str | None:
    return None if agent is None else agent.agent or agent.model.name
