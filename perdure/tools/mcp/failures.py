"""Failures of a request to an MCP server.

Each text is the end of a sentence that begins with the server.
"""


class McpFailure(Exception):
    """The server gave no result, or answered with an error."""


class SessionNotStarted(McpFailure):
    """A session could not be opened."""


class RequestUndelivered(McpFailure):
    """The request did not reach the server, so it can be sent again in another session."""


class SessionLost(McpFailure):
    """The session was lost during the request, whose outcome is unknown."""


class ProtocolViolation(McpFailure):
    """The server executed the request and sent an answer that violates the protocol."""
