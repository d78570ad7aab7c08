"""Deviations from what the tools of `/mcp` promise."""

from reliability.deviations.deviation import Deviation, Surface

SERVER = "perdure/gateway/mcp/server.py"
STANDING = "perdure/gateway/mcp/standing.py"

MCP = Surface(
    "mcp",
    ("tests/gateway/mcp",),
    (
        Deviation(
            "what is refused is an error of the protocol",
            SERVER,
            'raise ToolError(f"{error} {hint}".strip()) from error',
            "raise",
        ),
        Deviation(
            "the same request starts two conversations",
            SERVER,
            "name = derive_conversation_id(user_id, request_id)",
            "name = new_conversation_id()",
        ),
        Deviation(
            "calls that do not wait for a person are pending",
            STANDING,
            "        if call.asks\n",
            "",
        ),
        Deviation(
            "the newest slot is one too many",
            STANDING,
            "last_seq=status.next_seq - 1",
            "last_seq=status.next_seq",
        ),
    ),
)
