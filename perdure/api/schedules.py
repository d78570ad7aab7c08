"""Schedules: tasks that begin at times of a calendar, and the requests about them."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from perdure.api.conversations import ConversationId, StartedAgent, Text
from perdure.events.base import Frozen, Timestamp, Tolerant

MAX_CRONS = 20
SCHEDULE_NAME_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
"""The pattern of a schedule's name: it has no colon, which stands between user and name."""

Overlap: TypeAlias = Literal["skip", "buffer_one", "buffer_all", "cancel_other", "allow_all"]
"""What happens at a time of the schedule while the turn that it began last still goes on.

`skip` lets the time pass, `buffer_one` and `buffer_all` begin afterwards, `cancel_other` interrupts
the turn that goes on, and `allow_all` does not look. A turn that waits for a person does not count.
"""

Cron: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]
ScheduleName: TypeAlias = Annotated[str, Field(pattern=SCHEDULE_NAME_PATTERN)]
ZoneName: TypeAlias = Annotated[str, Field(min_length=1, max_length=64)]


class ScheduleDefinition(Frozen):
    """The task and the times of a schedule; durations are in seconds."""

    text: Annotated[Text, Field(min_length=1)]
    """The message that begins a turn each time."""
    cron: Annotated[tuple[Cron, ...], Field(max_length=MAX_CRONS)] = ()
    """Times as in crontab: minute, hour, day of the month, month, day of the week."""
    every: Annotated[float, Field(ge=1, le=366 * 86_400)] | None = None
    """The time between two beginnings, counted from 1970 on."""
    time_zone: ZoneName = "UTC"
    """The IANA name of the time zone of `cron`, such as Europe/Oslo."""
    jitter: Annotated[float, Field(ge=0, le=86_400)] = 0
    """The most by which a beginning is delayed at random."""
    overlap: Overlap = "skip"
    catch_up: Annotated[float, Field(ge=10, le=366 * 86_400)] = 86_400
    """How late a beginning may be, after an outage of Temporal: what is later is left out."""
    conversation_id: ConversationId | None = None
    """The conversation to which the message is sent; without one, each time begins a new one."""

    @model_validator(mode="after")
    def _has_times(self) -> "ScheduleDefinition":
        if not self.cron and self.every is None:
            raise ValueError("a schedule needs times: give `cron` or `every`")
        if not self.text.strip():
            raise ValueError("the text of a schedule may not be empty")
        return self


class Firing(Tolerant):
    """A time at which a schedule began a turn; times are UTC."""

    scheduled_at: Timestamp
    """The time of the schedule; `started_at` is later after an outage, or by jitter."""
    started_at: Timestamp
    conversation_id: str


class Schedule(Tolerant):
    """A schedule of a user; times are UTC."""

    name: str
    definition: ScheduleDefinition
    agent: str | None = None
    """The name of the agent, or its model, of new conversations."""
    paused: bool = False
    note: str = ""
    """Why it was paused or resumed last."""
    created: Timestamp | None = None
    """None in lists, as are the three numbers."""
    firing_count: int | None = None
    missed_count: int | None = None
    """Times that were too late for `catch_up`."""
    skipped_count: int | None = None
    """Times that `overlap` has left out."""
    next_times: tuple[Timestamp, ...] = ()
    recent_firings: tuple[Firing, ...] = ()
    """The last firings, the newest at the end."""


class ScheduleList(Tolerant):
    """`GET /v1/schedules`: the schedules of the user, by name."""

    items: tuple[Schedule, ...]


class CreateSchedule(ScheduleDefinition):
    """`POST /v1/schedules/{name}`: create a schedule; without `agent`, with the default agent.

    With a `conversation_id` there is neither an agent nor a model.
    """

    agent: StartedAgent | None = None
    """The agent itself, its name, or `{"extends": NAME, …}`: a named one with other fields."""
    model: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    """The model of the agent, in place of the agent's own."""

    @property
    def definition(self) -> ScheduleDefinition:
        return ScheduleDefinition(**self.model_dump(include=set(ScheduleDefinition.model_fields)))


class SchedulePause(Frozen):
    """`POST …/pause` and `POST …/resume`."""

    note: Annotated[str, Field(max_length=1000)] = ""
    """Why, for whoever looks at the schedule."""


class Backfill(Frozen):
    """`POST …/backfill`: begin now what the times between two moments would have begun."""

    since: Annotated[str, Field(max_length=40)]
    """ISO dates and times, UTC where they name no zone."""
    until: Annotated[str, Field(max_length=40)]
    overlap: Overlap = "buffer_all"
