"""The schedules of a user of a gateway."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perdure.agent.spec import Agent
from perdure.api.schedules import (
    Backfill,
    CreateSchedule,
    Overlap,
    Schedule,
    ScheduleDefinition,
    ScheduleList,
    SchedulePause,
)
from perdure.client.http.bodies import encode_agent
from perdure.client.http.client import HttpClient
from perdure.client.http.problems import build_body
from perdure.client.schedules.ids import check_schedule_name

PATH = "/v1/schedules"


@dataclass(frozen=True)
class HttpSchedules:
    """The schedules of one user of a gateway, with the methods of `Schedules`."""

    client: HttpClient

    async def create(
        self,
        name: str,
        definition: ScheduleDefinition,
        agent: Agent | Mapping[str, Any] | str | None = None,
    ) -> Schedule:
        """Create a schedule; see `Schedules.create`. The agent is what the gateway allows."""
        encoded = None if agent is None else encode_agent(agent)
        body = build_body(CreateSchedule, agent=encoded, **definition.model_dump())
        return await self.client.connection.post(_path_of(name), Schedule, body)

    async def list_schedules(self) -> list[Schedule]:
        """List the schedules of the user, by name."""
        return list((await self.client.connection.get(PATH, ScheduleList)).items)

    async def get(self, name: str) -> Schedule:
        """Describe a schedule. Raises NotFound, Invalid."""
        return await self.client.connection.get(_path_of(name), Schedule)

    async def pause(self, name: str, note: str = "") -> None:
        """Let no time of the schedule begin anything. Raises NotFound, Invalid."""
        await self._act(name, "pause", SchedulePause(note=note), repeatable=True)

    async def resume(self, name: str, note: str = "") -> None:
        """Let the times to come begin turns again. Raises NotFound, Invalid."""
        await self._act(name, "resume", SchedulePause(note=note), repeatable=True)

    async def trigger(self, name: str) -> None:
        """Begin a turn now, as `overlap` allows. Raises NotFound, Invalid."""
        await self._act(name, "trigger", None)

    async def backfill(
        self, name: str, since: str, until: str, overlap: Overlap = "buffer_all"
    ) -> None:
        """Begin now what times of before would have begun; see `Schedules.backfill`."""
        body = build_body(Backfill, since=since, until=until, overlap=overlap)
        await self._act(name, "backfill", body)

    async def delete(self, name: str) -> None:
        """Delete a schedule; what it has begun goes on. Raises NotFound, Invalid."""
        await self.client.connection.delete(_path_of(name))

    async def _act(
        self, name: str, act: str, body: SchedulePause | Backfill | None, repeatable: bool = False
    ) -> None:
        path = f"{_path_of(name)}/{act}"
        await self.client.connection.post(path, Schedule, body, repeatable=repeatable)


def _path_of(name: str) -> str:
    return f"{PATH}/{check_schedule_name(name)}"
