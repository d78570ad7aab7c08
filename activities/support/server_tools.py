"""The prompt anew, once the call of a server's tool has changed what the servers offer."""

import asyncio
import logging

from perdure.activities.support.resources import Resources
from perdure.activities.support.step import now
from perdure.agent.spec import Agent
from perdure.events.base import UNASSIGNED_ID
from perdure.events.messages import SystemPromptEvent
from perdure.storage.log.event_log import EventLog
from perdure.tools.errors import CatalogError

logger = logging.getLogger(__name__)

RELIST_TIMEOUT = 10.0
"""Timeout in seconds for listing the tools of servers after a call."""


async def find_changed_prompt(
    resources: Resources, log: EventLog, spec: Agent, prompt: SystemPromptEvent, tool_name: str
) -> SystemPromptEvent | None:
    """Return the prompt with the tools that servers offer after a call of the tool.

    None if they are the same, or not known, or if the tool is no server's.
    """
    if not spec.mcp:
        return None
    own_tools = resources.own_tools(spec, log)
    if tool_name in own_tools:
        return None
    others = [tool for tool in prompt.tools if tool.name not in own_tools]
    place = (log.prefix, spec.mcp, resources.workspace(spec, log))
    try:
        async with asyncio.timeout(RELIST_TIMEOUT):
            changes = await resources.mcp.find_changes(*place, others)
    except (CatalogError, TimeoutError) as error:
        logger.info("what the servers offer now is not known: %s", error)
        return None
    if changes is None:
        return None
    tools = (*(tool for tool in prompt.tools if tool.name in own_tools), *changes)
    return prompt.model_copy(update={"id": UNASSIGNED_ID, "timestamp": now(), "tools": tools})
