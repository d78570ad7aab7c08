"""The server of the Model Context Protocol at `/mcp` of a gateway."""

from contextlib import AbstractAsyncContextManager
from typing import Any, cast

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import HTTPConnection, Request
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from perdure.api.keys import Scope as KeyScope
from perdure.client.protocol import ConversationClient, ConversationHandle
from perdure.gateway.agents.own_secrets import agent_user
from perdure.gateway.callers import Caller, admit, authenticate
from perdure.gateway.errors import Refused
from perdure.gateway.gateway import Gateway
from perdure.gateway.identity.principal import Principal
from perdure.gateway.mcp.server import build_server

PATH = "/mcp"

PRINCIPAL_KEY = "perdure.mcp.principal"
"""The place of the principal in the scope of a request."""


class GatewayHost:
    """The conversations of whoever sends a request."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def client(self, context: Context[Any], scope: KeyScope) -> ConversationClient:
        return cast(ConversationClient, self._caller(context, scope).client)

    async def start(
        self,
        context: Context[Any],
        task: str,
        agent: str | None,
        conversation_id: str,
        message_id: str,
    ) -> ConversationHandle:
        client, agents = self._caller(context, "write").client, self._gateway.agents
        chosen = await agents.choose(agent_user(client), agent, None)
        return await client.start(task, chosen, conversation_id, message_id)

    def _caller(self, context: Context[Any], scope: KeyScope) -> Caller:
        request = context.request_context.request
        assert isinstance(request, Request), "requests come over HTTP"
        principal: Principal = request.scope[PRINCIPAL_KEY]
        try:
            return admit(self._gateway, principal, scope)
        except Refused as error:
            raise ToolError(error.detail) from error


class McpEndpoint:
    """The application: it takes requests of whoever has a key. `run` has to be entered first."""

    def __init__(self, gateway: Gateway) -> None:
        self._server = build_server(GatewayHost(gateway))
        self._app: ASGIApp = self._server.streamable_http_app(
            streamable_http_path=PATH,
            stateless_http=True,  # any gateway answers any request
            max_request_body_size=gateway.settings.gateway_max_body,
            # The gateway checks by itself how it is called, and where a page comes from.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal = await authenticate(HTTPConnection(scope))
        # A scope of its own: the library's application would put itself in the gateway's place.
        await self._app({**scope, PRINCIPAL_KEY: principal}, receive, send)

    def run(self) -> AbstractAsyncContextManager[None]:
        """Serve while inside; once only."""
        return self._server.session_manager.run()

    def route(self) -> Route:
        return Route(PATH, self)
