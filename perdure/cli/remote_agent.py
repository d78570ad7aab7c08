"""The named agents of the gateway that is set."""

from perdure.agent.layers import merge_layers
from perdure.api.agents import ListedAgent
from perdure.cli.agent_options import option_layers
from perdure.cli.declarations.agent_fields import AgentOptions
from perdure.cli.environment import connect_gateway
from perdure.client.http.address import quote_segment
from perdure.client.http.remote_agent import RemoteAgent
from perdure.errors import Invalid, NotFound
from perdure.settings.settings import Settings


async def find_remote_agent(options: AgentOptions, settings: Settings) -> RemoteAgent:
    """Find the agent of a name that is not on this machine, with the options' fields.

    Raises Invalid where the gateway has none of this name either.
    """
    name = options.agent or ""
    connection = (await connect_gateway(settings)).connection
    try:
        shown = await connection.get(f"/v1/agents/{quote_segment(name)}", ListedAgent)
    except NotFound as error:
        message = f"There is no agent {name!r}, neither here nor behind the gateway."
        raise Invalid(message, "`perdure agent ls` lists those that there are.") from error
    fields = merge_layers(option_layers(options)).fields
    request = {"extends": name, **fields}
    known = {"model": shown.model or "the gateway's", "tools": shown.tools, "agent": name}
    return RemoteAgent.model_validate({**known, **fields, "request": request})
