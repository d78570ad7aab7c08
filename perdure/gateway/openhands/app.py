"""The application that serves the clients of OpenHands' agent server, below `/openhands`."""

from starlette.applications import Starlette

from perdure.gateway.gateway import Gateway
from perdure.gateway.openhands import control, conversations, reading, server, socket
from perdure.gateway.openhands.answers import add_error_handlers
from perdure.gateway.openhands.conversation import OpenHandsDoor

PATH = "/openhands"
"""The path of the address that a client is given as its host."""


def create_openhands_app(gateway: Gateway) -> Starlette:
    """Build the application; it is mounted in that of the gateway."""
    routes = (*server.ROUTES, *reading.ROUTES, *control.ROUTES, *conversations.ROUTES)
    app = Starlette(routes=[*routes, *socket.ROUTES])
    app.state.gateway, app.state.door = gateway, OpenHandsDoor()
    add_error_handlers(app)
    return app
