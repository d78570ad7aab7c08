"""The arguments of another server's tool, checked against the JSON schema that the log holds.

Nothing but the recorded definition is needed: an answer is read while the server is away.
"""

from collections.abc import Callable
from typing import Any

from events.actions import MCPToolAction
from events.content import ToolDefinition
from tools.shape import shaped


def parser(definition: ToolDefinition) -> Callable[[dict[str, Any]], MCPToolAction]:
    """What reads a model's decoded arguments for the tool of `definition`.

    It raises ValueError with a sentence for the model where they do not fit.
    """
    return lambda arguments: MCPToolAction(data=fitted(definition.parameters, arguments))


def fitted(schema: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments, in the shape that `schema` asks for where only that can be meant.

    Where the schema cannot be understood, they are left to the server. Raises ValueError with a
    sentence for the model.
    """
    # Imported late: it takes as long as half of a worker's own modules.
    from tools.mcp.schema import complaints

    if not complaints(schema, arguments):
        return arguments
    mended = shaped(arguments, schema)
    if wrong := complaints(schema, mended):
        raise ValueError("; ".join(dict.fromkeys(wrong)) + ".")
    return mended
