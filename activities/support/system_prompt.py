"""The system prompt of an agent, with the tools, secrets and state that it has now."""

from typing import Any

from perdure.activities.support.extensions import check_extensions
from perdure.activities.support.load import load_event
from perdure.activities.support.resources import Resources
from perdure.activities.support.step import now
from perdure.activities.support.writer import Writer
from perdure.agent.knowledge.system_prompt import build_dynamic_context, build_static_prompt
from perdure.agent.spec import Agent
from perdure.events.base import UNASSIGNED_ID
from perdure.events.content import TextContent
from perdure.events.messages import SystemPromptEvent
from perdure.storage.errors import Altered
from perdure.storage.log.event_log import EventLog
from perdure.storage.noted_values import load_own_values, load_session_state
from perdure.tools.mcp.servers import OnStarting


async def build_prompt(
    resources: Resources, log: EventLog, spec: Agent, report: OnStarting = lambda _: None
) -> SystemPromptEvent:
    """Build the system prompt of an agent. Raises CatalogError.

    `report` is called with the names of the servers that are starting.
    """
    context = await _build_context(resources, log, spec)
    tools = await resources.tools(spec, log, report)
    check_extensions(spec)
    return SystemPromptEvent(
        timestamp=now(),
        system_prompt=TextContent(text=build_static_prompt(spec)),
        tools=tuple(tool.definition for tool in tools),
        dynamic_context=context,
    )


async def renew_context(resources: Resources, writer: Writer, spec: Agent, prompt_seq: int) -> None:
    """Record the prompt again if the values of the state that it shows have changed."""
    prompt = writer.find_newest(SystemPromptEvent)
    prompt = prompt or await load_event(writer.log, prompt_seq, SystemPromptEvent)
    context = await _build_context(resources, writer.log, spec)
    if context == prompt.dynamic_context:
        return
    changes = {"id": UNASSIGNED_ID, "timestamp": now(), "dynamic_context": context}
    await writer.write("context", prompt.model_copy(update=changes))


async def _build_context(resources: Resources, log: EventLog, spec: Agent) -> TextContent | None:
    """Build the dynamic part of the prompt."""
    descriptions = {}
    if spec.secrets:
        descriptions = (await resources.load_secrets(log.user_id)).descriptions()
    text = build_dynamic_context(spec, descriptions, await _load_shown_state(log, spec))
    return TextContent(text=text) if text else None


async def _load_shown_state(log: EventLog, spec: Agent) -> dict[str, Any] | None:
    """Load the values of the session state if the agent is shown them.

    Without the shared ones if one of them is damaged: the tool `state` says so.
    """
    if spec.state != "shown":
        return None
    try:
        return await load_session_state(log)
    except Altered:
        return await load_own_values(log)
