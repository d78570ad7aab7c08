"""Functions for a model to call, and calling them as it does."""

import dataclasses
import enum
import json
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, Field

from events.actions import MCPToolAction
from events.content import text_of
from events.observations import MCPToolObservation, Observation
from tests.tools.conftest import Place
from tools.function import tool_from


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    x: int
    y: int = 0


@dataclasses.dataclass
class Size:
    width: int


def add(a: int, b: Annotated[int, Field(description="What to add.", ge=0)] = 1) -> int:
    """Add two numbers.

    The second one is not negative.
    """
    return a + b


async def call(function: Callable[..., Any], place: Place, **arguments: Any) -> Observation:
    made = tool_from(function)
    action = made.parse(json.loads(json.dumps(arguments)))
    return await made.run(
        MCPToolAction.model_validate_json(action.model_dump_json()), place.context
    )


async def answer(function: Callable[..., Any], place: Place, **arguments: Any) -> str:
    observation = await call(function, place, **arguments)
    assert isinstance(observation, MCPToolObservation)
    assert not observation.is_error
    return text_of(observation.content)
