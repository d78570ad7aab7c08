"""The interface of the schedules of a user, over Temporal or over a gateway."""

from collections.abc import Mapping
from typing import Any, Protocol

from pydantic import ValidationError

from perdure.agent.spec import Agent
from perdure.api.schedules import Overlap, Schedule, ScheduleDefinition
from perdure.errors import Invalid


class ScheduleClient(Protocol):
    """The schedules of a user, as `Schedules` and `HttpSchedules` have them."""

    async def create(
        self,
        name: str,
        definition: ScheduleDefinition,
        agent: Agent | Mapping[str, Any] | str | None = None,
    ) -> Schedule: ...
    async def list_schedules(self) -> list[Schedule]: ...
    async def get(self, name: str) -> Schedule: ...
    async def pause(self, name: str, note: str = "") -> None: ...
    async def resume(self, name: str, note: str = "") -> None: ...
    async def trigger(self, name: str) -> None: ...
    async def backfill(
        self, name: str, since: str, until: str, overlap: Overlap = "buffer_all"
    ) -> None: ...
    async def delete(self, name: str) -> None: ...


def build_definition(text: str, **fields: Any) -> ScheduleDefinition:
    """Build the definition of a schedule. Raises Invalid."""
    try:
        return ScheduleDefinition(text=text, **fields)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        sentence = first["msg"].removeprefix("Value error, ")
        raise Invalid(f"{field}: {sentence}." if field else f"{sentence}.".capitalize()) from error
