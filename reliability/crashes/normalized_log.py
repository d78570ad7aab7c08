"""Logs without the values that differ between equal conversations."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from perdure.events.entry import Entry
from perdure.events.event import answered_action_id
from perdure.events.messages import RecallEvent
from perdure.events.tools import ActionEvent

VARYING_FIELDS = ("id", "timestamp", "origin", "files", "forgotten_seqs", "forgotten_size")
"""Fields that no two conversations have in common. Which slots are forgotten, the ids tell too."""

MEMORIES = "memories of "
"""The beginning of the name of what a message recalls."""

NormalizedLog = Mapping[str, Mapping[str, Any]]
"""Each event by a name that is the same in every conversation, in the order of the log."""


def normalize(conversation_id: str, entries: Sequence[Entry]) -> NormalizedLog:
    """Two conversations in which the same was said and done tell the same."""
    names = name_events(entries)
    fields = {names[entry.seq]: json.loads(entry.body) for entry in entries}
    aliases = {entry.event.id: names[entry.seq] for entry in entries} | {
        conversation_id: "conversation"
    }
    aliases |= _responses(fields.values())
    return {name: normalize_value(event, aliases) for name, event in fields.items()}


def name_events(entries: Sequence[Entry]) -> dict[int, str]:
    """A name for each slot: an answer's is that of its call, for they come in any order.

    What a message recalls has its text, as there is none where nothing is found.
    """
    actions = (entry.event for entry in entries if isinstance(entry.event, ActionEvent))
    calls = {action.id: action.tool_call_id for action in actions}
    times: Counter[str] = Counter()
    names = {}
    for entry in entries:
        if call := answered_action_id(entry.event):
            names[entry.seq] = f"answer {calls[call]}"
        elif isinstance(entry.event, RecallEvent) and entry.event.content.startswith(
            "<memories>\n"
        ):
            names[entry.seq] = f"{MEMORIES}{entry.event.query}"
        else:
            times[entry.event.kind] += 1
            names[entry.seq] = f"{entry.event.kind} {times[entry.event.kind]}"
    return names


def _responses(events: Any) -> dict[str, str]:
    ids = (event.get("llm_response_id") for event in events)
    return {each: f"response {nth}" for nth, each in enumerate(dict.fromkeys(filter(None, ids)))}


def normalize_value(event: dict[str, Any], aliases: Mapping[str, str]) -> Mapping[str, Any]:
    fields = {name: value for name, value in event.items() if name not in VARYING_FIELDS}
    if "usage" in fields:
        fields["usage"] = {n: value for n, value in fields["usage"].items() if n != "latency"}
    if fields.get("key") == "opened":
        fields["value"] = "a run"
    if "observation" in fields:  # the process and the disk of a terminal are another one's
        fields["observation"] = {n: v for n, v in fields["observation"].items() if n != "metadata"}
    text = json.dumps(fields, sort_keys=True)
    for each, alias in aliases.items():
        text = text.replace(each, alias)
    plain: dict[str, Any] = json.loads(text)
    if "forgotten_event_ids" in plain:
        plain["forgotten_event_ids"].sort()
    return plain


def find_differences(
    undisturbed: NormalizedLog, disturbed: NormalizedLog, lost: Sequence[str]
) -> list[str]:
    """Find how two logs differ, apart from the answers to calls whose outcome is `lost`.

    So it is with memories that a message recalls: they may only be in one of the logs.
    """
    undisturbed, disturbed = _without(undisturbed, lost), _without(disturbed, lost)
    differences = []
    due, order = sort_parallel_results(undisturbed), sort_parallel_results(disturbed)
    if due != order:
        differences.append(f"the log is {order}, not {due}")
    if missing := sorted(undisturbed.keys() ^ disturbed.keys()):
        differences.append(f"only one of the logs has {', '.join(missing)}")
    for name in undisturbed.keys() & disturbed.keys():
        expected, actual = undisturbed[name], disturbed[name]
        differences += [
            f"{name}: {field} is {actual.get(field)!r}, not {expected.get(field)!r}"
            for field in sorted(expected.keys() | actual.keys())
            if expected.get(field) != actual.get(field)
        ]
    return differences


def _without(log: NormalizedLog, lost: Sequence[str]) -> NormalizedLog:
    return {name: event for name, event in log.items() if name not in lost}


def sort_parallel_results(log: NormalizedLog) -> list[str]:
    """The names; answers to calls that were side by side come in any order."""
    groups = groupby(log, lambda name: name.startswith("answer "))
    return [name for any_order, group in groups for name in (sorted(group) if any_order else group)]
