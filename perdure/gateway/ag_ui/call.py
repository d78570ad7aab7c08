"""A request, who has sent it, and the agent and the conversation that it addresses."""

import json
from dataclasses import dataclass

from starlette.requests import Request

from perdure.agent.named import DEFAULT_AGENT
from perdure.agent.spec import Agent
from perdure.api.conversations import Start
from perdure.client.agents.sources import find_own
from perdure.client.conversation import Conversation
from perdure.gateway.ag_ui.ids import find_conversation_id
from perdure.gateway.ag_ui.requests import RunAgentInput, refuse
from perdure.gateway.agents.own_secrets import agent_user, list_own_secrets
from perdure.gateway.callers import Caller, address, admit, authenticate, find_gateway
from perdure.gateway.gateway import Gateway
from perdure.storage.user_agents import UserAgents


@dataclass(frozen=True)
class Call:
    """A request to run an agent in a conversation, which may not exist yet."""

    request: Request
    caller: Caller
    agent: str
    body: RunAgentInput
    conversation: Conversation

    @property
    def gateway(self) -> Gateway:
        return self.caller.gateway

    @property
    def user_id(self) -> str:
        return self.caller.client.user_id

    @property
    def blobs(self) -> str:
        """The address of the images of the conversation."""
        site = self.gateway.settings.gateway_url or str(self.request.base_url.replace(path=""))
        return f"{site.rstrip('/')}/v1/conversations/{self.conversation.id}/blobs"

    async def choose_agent(self, instructions: str | None) -> Agent:
        """Return the agent for a conversation that begins. Raises Invalid."""
        agents, client = self.gateway.agents, self.caller.client
        agent = await agents.choose(agent_user(client), self.agent, None)
        start = Start(instructions=instructions)
        return agents.apply(agent, start, await list_own_secrets(client, agent, start))


async def open_call(request: Request) -> Call:
    """Read a request. Raises Refused, ValidationError and the errors of the client."""
    gateway = find_gateway(request)
    caller = admit(gateway, await authenticate(request), "write")
    name = request.path_params["agent"]
    await _require_agent(caller, name)
    body = await _parse(request)
    _refuse_tools(gateway, body)
    conversation_id = find_conversation_id(caller.client.user_id, body.thread_id)
    conversation = (await address(caller, conversation_id, None)).conversation
    return Call(request, caller, name, body, conversation)


def name_agent(agent: Agent) -> str:
    """Return the name by which an address names an agent."""
    return agent.agent or DEFAULT_AGENT


async def _require_agent(caller: Caller, name: str) -> None:
    """Raise Refused where there is no agent of this name."""
    own = UserAgents(caller.gateway.store, caller.client.user_id)
    if name in caller.gateway.agents.list_names() or await find_own(own, name) is not None:
        return
    detail = f"There is no agent {name[:80]!r}: GET /v1/agents lists those that there are."
    raise refuse(detail, "not_found", 404)


async def _parse(request: Request) -> RunAgentInput:
    try:
        fields = json.loads(await request.body() or b"{}")
        json.dumps(fields, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise refuse("The body cannot be read: send JSON in UTF-8.") from None
    return RunAgentInput.model_validate(fields)


def _refuse_tools(gateway: Gateway, body: RunAgentInput) -> None:
    """Raise Refused for tools of the client, unless the installation reads over them."""
    if body.tools and gateway.settings.gateway_ag_ui_tools == "refuse":
        raise refuse(
            "tools: an agent has its own tools, and runs them: leave `tools` out, or set "
            'gateway_ag_ui_tools = "ignore".',
            "unsupported_tools",
        )
