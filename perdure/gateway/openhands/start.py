"""The agent of a conversation that OpenHands' client starts: ours, as far as the client says."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perdure.agent.policies import StuckThresholds
from perdure.agent.spec import Agent, NoCondenser, SummaryCondenser
from perdure.client.client import Client
from perdure.errors import Invalid
from perdure.events.validation_errors import quote
from perdure.gateway.agents.own_secrets import agent_user, list_own_secrets
from perdure.gateway.gateway import Gateway
from perdure.gateway.openhands.bodies import ClientTool, JsonObject, OpenHandsTags, StartBody

STANDARD_TOOLS = ("think", "finish")
"""Tools that every agent of OpenHands has."""


async def choose_agent(gateway: Gateway, client: Client, body: StartBody) -> Agent:
    """Return the agent for a start: the installation's, with the model and the tools of the client.

    Raises Invalid for a model or a tool that may not be used, and for what is not served.
    """
    if problem := find_unserved(body):
        raise Invalid(problem)
    model = body.agent_fields.llm.model if body.agent_fields.llm else None
    if not model:
        raise Invalid("The agent names no model: set `agent.llm.model`.")
    offered = await gateway.agents.choose(agent_user(client), None, model)
    try:
        changes = dict(list_changes(offered, body))
        agent = Agent.model_validate({**offered.model_dump(mode="json"), **changes})
    except ValueError as error:
        raise Invalid(f"The agent cannot be used: {error}") from error
    gateway.agents.policy.check(agent, offered, await list_own_secrets(client, agent))
    return agent


def find_unserved(body: StartBody) -> str | None:
    """Return a sentence on what a start asks for and is not served; None if all is."""
    if body.client_tools:
        return "Tools of the client are not served: name tools of ours."
    if body.plugins:
        return "Plugins are not served: name an agent of the installation that has what they bring."
    if body.agent_fields.mcp_config:
        return "MCP servers of a client are not served: the installation's agents may have some."
    if body.agent_fields.kind != "Agent":
        return f"Agents of the kind {quote(body.agent_fields.kind)} are not served: use `Agent`."
    return None


def list_changes(offered: Agent, body: StartBody) -> Iterator[tuple[str, Any]]:
    """Yield the fields of our agent that the client decides."""
    yield "tools", list_tools(body.agent_fields.tools or ())
    yield "limits", {**offered.limits.model_dump(), "max_iterations": body.max_iterations}
    yield "tags", join_tags(body.tags)
    if body.confirmation_policy is not None:
        yield "confirmation", body.confirmation_policy.confirmation().model_dump()
    if not body.stuck_detection:
        yield "stuck", dict.fromkeys(StuckThresholds.model_fields.keys() - {"window"}, 0)
    elif (found := body.stuck_detection_thresholds) is not None:
        numbers = found.model_dump()
        yield "stuck", {**numbers, "alternating": numbers.pop("alternating_pattern")}
    if (condenser := read_condenser(body.agent_fields.condenser)) is not None:
        yield "condenser", condenser
    if (context := body.agent_fields.agent_context) and context.system_message_suffix:
        texts = filter(None, (offered.instructions, context.system_message_suffix))
        yield "instructions", "\n\n".join(texts)


def list_tools(tools: Sequence[ClientTool]) -> tuple[str, ...]:
    """Return our names of tools. Raises Invalid for one that is not ours."""
    from perdure.tools.catalog import is_known_tool  # slow: each tool is imported

    names = [tool.name for tool in tools]
    for name in names:
        if not is_known_tool(name):
            raise Invalid(
                f"There is no tool {quote(name)} here.",
                "Use terminal, file_editor, task_tracker or another one that workers have.",
            )
    return tuple(dict.fromkeys((*names, *STANDARD_TOOLS)))


def read_condenser(condenser: JsonObject | None) -> Mapping[str, Any] | None:
    """Return our condenser for one of OpenHands'; None if the installation's is to be used."""
    if condenser is None:
        return None
    match condenser.get("kind"):
        case "LLMSummarizingCondenser":
            sizes = {key: condenser[key] for key in ("max_size", "keep_first") if key in condenser}
            return SummaryCondenser.model_validate(sizes).model_dump()
        case "NoOpCondenser":
            return NoCondenser().model_dump()
        case _:
            return None


def join_tags(tags: OpenHandsTags) -> tuple[str, ...]:
    """Return tags as ours: words, each a key with its value behind `=`."""
    return tuple(f"{key}={value}" for key, value in tags.items())


def split_tags(tags: tuple[str, ...]) -> JsonObject:
    """Return our tags as OpenHands': those that it could have, by key."""
    split = (tag.partition("=") for tag in tags)
    return {
        key: value
        for key, _, value in split
        if key.isascii() and key.isalnum() and key == key.lower()
    }
