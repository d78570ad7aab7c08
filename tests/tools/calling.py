"""Functions as tools, and calls of them as a model makes them."""

import dataclasses
import enum
import json
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, Field

from perdure.events.actions import MCPToolAction
from perdure.events.content import join_text
from perdure.events.custom import AnyObservation
from perdure.events.observations import MCPToolObservation
from perdure.tools.function import tool_from
from tests.tools.conftest import ToolBench


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


async def call(function: Callable[..., Any], place: ToolBench, **arguments: Any) -> AnyObservation:
    made = tool_from(function)
    action = made.parse(json.loads(json.dumps(arguments)))
    return await made.run(
        MCPToolAction.model_validate_json(action.model_dump_json()), place.context
    )


async def call_for_text(function: Callable[..., Any], place: ToolBench, **arguments: Any) -> str:
    observation = await call(function, place, **arguments)
    assert isinstance(observation, MCPToolObservation)
    assert not observation.is_error
    return join_text(observation.content)
