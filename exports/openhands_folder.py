"""The folder in which the OpenHands SDK keeps a conversation, version 1.58.

`Conversation(persistence_dir=FOLDER, conversation_id=ID)` finds it below FOLDER under the id's hex
digits. The agent has the tools that are theirs too; of the others it knows what was done with them.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from events.entry import Entry
from exports.format import About, Format, Part
from exports.json_text import compact
from exports.openhands import CLASSES, openhands_event
from exports.totals import Totals

_ID = re.compile(r"[0-9a-fA-F-]{8,}")
"""What they take for the id of an event."""

STATUSES = {"closed": "finished"}
"""The status that they lack, by the nearest that they have."""

BUILT_IN = ("finish", "think")
"""Tools that their agents have without being given them."""


def parts(about: About, entries: Iterable[Entry]) -> Iterator[Part]:
    """Numbered without a gap, where a log has one: they would stop reading there."""
    folder, totals = about.conversation_id.replace("-", ""), Totals()
    for nth, entry in enumerate(totals.watch(entries)):
        event = _identified(entry)
        name = f"events/event-{nth:05d}-{event['id']}.json"
        yield Part(f"{folder}/{name}", compact(event))
    yield Part(f"{folder}/base_state.json", compact(_state(about, totals)))


def _identified(entry: Entry) -> dict[str, Any]:
    """The event; one of another kind of log may have an id that is none to them."""
    event = openhands_event(entry.event)
    if _ID.fullmatch(event["id"]):
        return event
    return event | {"id": f"00000000-0000-0000-0000-{entry.seq:012d}"}


def _state(about: About, totals: Totals) -> dict[str, Any]:
    model = about.model or "unknown"
    names = [name for name in totals.tools if name in CLASSES and name not in BUILT_IN]
    return {
        "id": about.conversation_id,
        "agent": {
            "kind": "Agent",
            "llm": {"model": model, "usage_id": "agent"},
            "tools": [{"name": name, "params": {}} for name in names],
        },
        "workspace": {"kind": "LocalWorkspace", "working_dir": about.workspace or "workspace"},
        "persistence_dir": about.conversation_id.replace("-", ""),
        "execution_status": STATUSES.get(about.status, about.status),
        "stats": {"usage_to_metrics": {"agent": _metrics(model, totals)}},
        "tags": {"title": about.title[:256]} if about.title else {},
    }


def _metrics(model: str, totals: Totals) -> dict[str, Any]:
    spent = totals.all
    return {
        "model_name": model,
        "accumulated_cost": spent.cost,
        "accumulated_token_usage": {
            "model": model,
            "prompt_tokens": spent.prompt_tokens,
            "completion_tokens": spent.completion_tokens,
            "cache_read_tokens": spent.cached_tokens,
            "cache_write_tokens": spent.cache_write_tokens,
            "reasoning_tokens": spent.reasoning_tokens,
        },
    }


OPENHANDS = Format("openhands", "", "a folder that the OpenHands SDK opens", parts)
