"""Discussions of scripted agents, and how their logs are compared."""

import asyncio
import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHandle

from perdure.agent.discussion.spec import DiscussionKey, DiscussionSpec, parse_discussion
from perdure.agent.discussion.state import DiscussionStart, DiscussionStatus
from perdure.events.discussion import DiscussionEvent
from perdure.storage.discussions.folder import save_spec
from perdure.storage.discussions.service import EventLogService
from perdure.temporal.names import discussion_workflow_id
from tests.harness import ConversationHarness

Answer = str | dict[str, Any]
Handle = WorkflowHandle[Any, DiscussionStatus]


def wants(urgency: int, line: str = "I have a point.") -> str:
    return json.dumps({"speak": True, "urgency": urgency, "line": line})


PASS = json.dumps({"speak": False})


def ballot(choice: str, reason: str = "I say so.") -> str:
    return json.dumps({"ballot": choice, "reason": reason})


def script(folder: Path, answers: Sequence[Answer]) -> str:
    path = folder / f"{uuid.uuid4()}.json"
    path.write_text(json.dumps({"answers": list(answers)}))
    return f"scripted:{path}"


def debate(
    folder: Path,
    agents: Mapping[str, Sequence[Answer]],
    moderator: Sequence[Answer] | None = None,
    policy: str = "urgency",
    tools: Mapping[str, Sequence[str]] | None = None,
    **fields: Any,
) -> DiscussionSpec:
    """Return a discussion whose agents give these answers, each in turn."""
    table: dict[str, Any] = {
        "topic": "Should we work four days?",
        "agents": [
            {
                "id": name,
                "persona": f"You are {name}, and only you know the word {name}-secret.",
                "model": script(folder, answers),
                "tools": (tools or {}).get(name, ()),
            }
            for name, answers in agents.items()
        ],
        "moderator": {"policy": policy},
        **fields,
    }
    if moderator is not None:
        table["moderator"]["model"] = script(folder, moderator)
    return parse_discussion(table)


async def start(
    harness: ConversationHarness,
    spec: DiscussionSpec,
    session_id: str | None = None,
    **fields: Any,
) -> WorkflowHandle[Any, DiscussionStatus]:
    key = DiscussionKey(
        user_id=harness.client.user_id, session_id=session_id or f"s-{uuid.uuid4()}"
    )
    await save_spec(harness.client.store, key.user_id, key.session_id, spec)
    return await harness.client.temporal.start_workflow(
        "Discussion",
        DiscussionStart(key=key, **fields),
        id=discussion_workflow_id(key.user_id, key.session_id),
        task_queue=harness.client.task_queue,
        result_type=DiscussionStatus,
    )


async def status_of(handle: Handle) -> DiscussionStatus:
    status: DiscussionStatus = await handle.query("status", result_type=DiscussionStatus)
    return status


async def paused_debate(
    harness: ConversationHarness, answers: Sequence[Answer], **fields: Any
) -> Handle:
    """Start a discussion that is paused before its first round."""
    handle = await start(
        harness, debate(harness.folder, {"ada": answers}, **fields), is_paused=True
    )
    async with asyncio.timeout(60):
        while (await status_of(handle)).status != "paused":
            await asyncio.sleep(0.05)
    return handle


async def read_all(harness: ConversationHarness, session_id: str) -> list[DiscussionEvent]:
    """Read the whole log, pruned events included."""
    service = EventLogService(harness.client.store, harness.client.user_id)
    events = await service.get_archived_events(session_id, 0, 100)
    events += await service.get_recent_events(session_id, 100)
    return sorted(events, key=lambda event: event.sequence)


def lines(events: Sequence[DiscussionEvent]) -> list[str]:
    """Write each event as `TYPE speaker: content`."""
    return [f"{event.type} {event.speaker}: {event.text}" for event in events]


def comparable(events: Sequence[DiscussionEvent]) -> list[dict[str, Any]]:
    """Return the events without the times at which they were written."""
    return [
        {name: value for name, value in event.to_json().items() if name != "timestamp"}
        for event in events
    ]
