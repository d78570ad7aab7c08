"""The sentences of errors that a tool returns."""

import pytest
from mcp.server.mcpserver.exceptions import ToolError

from perdure.errors import ClientError, Conflict, Unreachable
from perdure.gateway.mcp.server import explain_errors


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (Unreachable("Temporal is away."), "Temporal is away. Call it again."),
        (Unreachable("Temporal is away.", "Start it."), "Temporal is away. Start it."),
        (Conflict("It is closed."), "It is closed."),
    ],
)
async def test_an_error_says_what_to_do(error: ClientError, sentence: str) -> None:
    @explain_errors
    async def tool() -> None:
        raise error

    with pytest.raises(ToolError) as raised:
        await tool()
    assert str(raised.value) == sentence
