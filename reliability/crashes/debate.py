"""The traces of a debate, and how it differs from that of an undisturbed one."""

import json
from dataclasses import dataclass
from typing import Any

from perdure.client.client import Client
from perdure.client.discussion.handle import DiscussionHandle
from perdure.storage.discussions.verify import verify_discussion

VARYING_FIELDS = ("eventId", "timestamp", "sessionId", "sequence")
"""Fields that differ between equal debates: a person's ballot stands wherever it came."""


@dataclass(frozen=True)
class Debate:
    """A debate that is over: its log without what varies, its agents' turns, and its faults."""

    session_id: str
    events: list[dict[str, Any]]
    turns: list[int]
    faults: list[str]


async def read_debate(client: Client, handle: DiscussionHandle) -> Debate:
    """Read a debate with all that is stored of it. Raises StoreError."""
    events = [event.to_json() async for event in handle.stored_events()]
    verified = await verify_discussion(client.store, client.user_id, handle.id)
    names = (await handle.spec()).speakers()
    states = [await client.conversation(handle.conversation_id(name)).state() for name in names]
    return Debate(
        session_id=handle.id,
        events=sorted(map(_normalize, events), key=json.dumps),
        turns=[state.turn for state in states],
        faults=[f"{finding.key}: {finding.detail}" for finding in verified.findings],
    )


def _normalize(event: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name not in VARYING_FIELDS}


def find_violations(undisturbed: Debate, seen: Debate) -> list[str]:
    """List the faults of a debate, and its differences from the undisturbed one."""
    wrong = list(seen.faults)
    if seen.events != undisturbed.events:
        wrong += [f"only here: {it}" for it in seen.events if it not in undisturbed.events]
        wrong += [f"not here: {it}" for it in undisturbed.events if it not in seen.events]
        wrong.append(f"{len(seen.events)} events, not {len(undisturbed.events)}")
    if seen.turns != undisturbed.turns:
        wrong.append(f"the turns are {seen.turns}, not {undisturbed.turns}")
    return wrong
