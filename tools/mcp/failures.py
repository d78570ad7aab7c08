"""How a request to a server of the Model Context Protocol can fail.

Each text is the end of a sentence that begins with the server.
"""


class McpFailure(Exception):
    """The server gave no result."""


class NotStarted(McpFailure):
    """A session could not be opened."""


class Undelivered(McpFailure):
    """The request did not reach the server: it can be sent again, in another session."""


class Interrupted(McpFailure):
    """The session was lost while the server had the request: nobody knows what came of it."""


class Refused(McpFailure):
    """The server answered with an error."""


class Malformed(McpFailure):
    """The server did something, and answered in a way that the protocol does not know."""
