"""The schema of the outputs with which an agent finishes."""

from collections.abc import Collection, Mapping

from pydantic import JsonValue

FINISH_TOOL = "finish"


def check_response_schema(schema: Mapping[str, JsonValue] | None, tools: Collection[str]) -> None:
    """Raise ValueError if an agent with these tools cannot give outputs of the schema."""
    if schema is None:
        return
    if schema.get("type") != "object":
        raise ValueError('response_schema is a JSON schema with "type": "object"')
    if FINISH_TOOL not in tools:
        raise ValueError("response_schema needs the tool `finish`, which takes the outputs")
