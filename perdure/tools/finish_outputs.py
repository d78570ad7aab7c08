"""The tool `finish` of an agent with a response schema, whose outputs must fit it."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import JsonValue

from perdure.events.actions import FinishAction
from perdure.tools.mcp.definitions import fit_arguments
from perdure.tools.speech import FINISH, finish
from perdure.tools.tool import Tool

OUTPUTS_DESCRIPTION = "The results of the task, for a program."


@lru_cache(maxsize=64)
def make_finish(schema: str) -> Tool:
    """Make the tool `finish` of an agent with a response schema, which its `outputs` must fit."""
    outputs = {"description": OUTPUTS_DESCRIPTION, **json.loads(schema)}
    own = FINISH.definition.parameters
    parameters = {
        **own,
        "properties": {**own["properties"], "outputs": outputs},
        "required": [*own.get("required", ()), "outputs"],
    }
    definition = FINISH.definition.model_copy(update={"parameters": parameters})

    def parse(arguments: dict[str, Any]) -> FinishAction:
        fitted = fit_arguments(parameters, arguments)
        return FinishAction(message=fitted["message"], outputs=fitted["outputs"])

    return Tool(definition, parse, finish)


def with_response_schema(
    tools: Mapping[str, Tool], schema: Mapping[str, JsonValue] | None
) -> Mapping[str, Tool]:
    """Return the tools of an agent, whose `finish` takes the outputs that its schema asks for."""
    if schema is None or tools.get(FINISH.name) is not FINISH:
        return tools
    return {**tools, FINISH.name: make_finish(json.dumps(schema))}
