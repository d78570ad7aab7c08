"""Schedules: create, show, list, pause, trigger and delete them."""

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Path, Request

from perdure.agent.spec import Agent
from perdure.agent.start_fields import StartFields
from perdure.api.schedules import (
    SCHEDULE_NAME_PATTERN,
    Backfill,
    CreateSchedule,
    Schedule,
    ScheduleList,
    SchedulePause,
)
from perdure.client.schedules.schedules import Schedules
from perdure.errors import Conflict, Invalid
from perdure.gateway.agents.own_secrets import agent_user, list_own_secrets
from perdure.gateway.callers import COSTLY, Caller, Reader, Writer
from perdure.gateway.edge.audit import audit

router = APIRouter(prefix="/v1/schedules", tags=["schedules"])

MAX_SCHEDULES = 100
"""Schedules that a user may have through a gateway."""

MIN_INTERVAL = 60.0
"""Seconds between two times of a schedule, at least; a crontab has no finer ones."""

ScheduleName: TypeAlias = Annotated[str, Path(pattern=SCHEDULE_NAME_PATTERN)]


@router.get("")
async def list_schedules(caller: Reader) -> ScheduleList:
    """List the schedules of the user, by name."""
    return ScheduleList(items=tuple(await _schedules(caller).list_schedules()))


@router.get("/{name}")
async def get_schedule(name: ScheduleName, caller: Reader) -> Schedule:
    """Show a schedule, with the next times and what it has begun lately."""
    return await _schedules(caller).get(name)


@router.post("/{name}", status_code=201, dependencies=COSTLY)
async def create_schedule(
    request: Request, name: ScheduleName, body: CreateSchedule, caller: Writer
) -> Schedule:
    """Create a schedule; each of its times begins a conversation, or sends to one that there is."""
    if body.every is not None and body.every < MIN_INTERVAL:
        raise Invalid(f"`every` is {MIN_INTERVAL:g} seconds at least.", "Give more seconds.")
    agent = await _choose_agent(caller, body)
    schedules = _schedules(caller)
    if len(await schedules.list_schedules()) >= MAX_SCHEDULES:
        raise Conflict(f"A user may have {MAX_SCHEDULES} schedules.", "Delete one first.")
    made = await schedules.create(name, body.definition, agent)
    audit(request, "schedule.create", schedule=name)
    return made


@router.post("/{name}/pause")
async def pause(name: ScheduleName, body: SchedulePause, caller: Writer) -> Schedule:
    """Let no time of the schedule begin anything."""
    await _schedules(caller).pause(name, body.note)
    return await _schedules(caller).get(name)


@router.post("/{name}/resume")
async def resume(name: ScheduleName, body: SchedulePause, caller: Writer) -> Schedule:
    """Let the times to come begin turns again."""
    await _schedules(caller).resume(name, body.note)
    return await _schedules(caller).get(name)


@router.post("/{name}/trigger", dependencies=COSTLY)
async def trigger(name: ScheduleName, caller: Writer) -> Schedule:
    """Begin a turn now, as `overlap` allows."""
    await _schedules(caller).trigger(name)
    return await _schedules(caller).get(name)


@router.post("/{name}/backfill", dependencies=COSTLY)
async def backfill(name: ScheduleName, body: Backfill, caller: Writer) -> Schedule:
    """Begin now what the times between two moments would have begun."""
    await _schedules(caller).backfill(name, body.since, body.until, body.overlap)
    return await _schedules(caller).get(name)


@router.delete("/{name}", status_code=204)
async def delete_schedule(request: Request, name: ScheduleName, caller: Writer) -> None:
    """Delete a schedule; what it has begun goes on."""
    await _schedules(caller).delete(name)
    audit(request, "schedule.delete", schedule=name)


async def _choose_agent(caller: Caller, body: CreateSchedule) -> Agent | None:
    """Return the agent of new conversations; None where messages go to one that there is."""
    if body.conversation_id is not None:
        if body.agent is not None or body.model is not None:
            hint = "Leave `agent` and `model` out, or `conversation_id`."
            raise Invalid("The conversation has an agent already.", hint)
        return None
    agents, client = caller.gateway.agents, caller.client
    agent = await agents.choose(agent_user(client), body.agent, body.model)
    return agents.apply(agent, StartFields(), await list_own_secrets(client, agent))


def _schedules(caller: Caller) -> Schedules:
    return Schedules(caller.client)
