"""A discussion as others read it: a line of JSON for each event, or one page for people."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from perdure.agent.discussion.log_state import PASSED_OVER, PHASE_TRANSITION
from perdure.events.discussion import MODERATOR, SYSTEM, DiscussionEvent
from perdure.exports.markdown import render_markdown
from perdure.exports.report.page import render

COLOURS = 6
"""The colours of the page, which speakers take in turn."""


class Item(NamedTuple):
    """A part of the page: a speech, a summary, a vote or a note, or intents that are folded."""

    kind: str
    event: DiscussionEvent
    colour: int = 0
    text: str = ""
    folded: Sequence[tuple[str, str]] = ()


def write_lines(events: Iterable[DiscussionEvent]) -> Iterator[bytes]:
    """Write each event as a line of JSON with camelCase keys."""
    for event in events:
        yield json.dumps(event.to_json(), ensure_ascii=False).encode() + b"\n"


def write_page(session_id: str, topic: str, events: Sequence[DiscussionEvent]) -> Iterator[bytes]:
    """Write one page that needs nothing else; all text of agents is escaped or safe Markdown."""
    return render(
        "discussion.html",
        title=topic,
        session_id=session_id,
        items=list(_items(events)),
        first=events[0].timestamp if events else "",
        last=events[-1].timestamp if events else "",
        count_of_events=len(events),
        render_markdown=render_markdown,
    )


def _items(events: Iterable[DiscussionEvent]) -> Iterator[Item]:
    colours: dict[str, int] = {}
    intents: list[DiscussionEvent] = []
    for event in events:
        if event.type == "INTENT":
            intents.append(event)
            continue
        if intents:
            yield Item("intents", intents[0], folded=[(it.speaker, _line(it)) for it in intents])
            intents = []
        if (item := _item(event, colours)) is not None:
            yield item
    if intents:
        yield Item("intents", intents[0], folded=[(it.speaker, _line(it)) for it in intents])


def _item(event: DiscussionEvent, colours: dict[str, int]) -> Item | None:
    colour = 0
    if event.speaker not in (SYSTEM, MODERATOR):
        colour = 1 + colours.setdefault(event.speaker, len(colours)) % COLOURS
    match event.type:
        case "SPEECH" | "SUMMARY":
            return Item(event.type.lower(), event, colour, event.text)
        case "VOTE":
            kind = "tally" if event.speaker == SYSTEM else "vote"
            return Item(kind, event, colour, _line(event))
        case _:
            note = _describe_system(event)
            return Item("note", event, colour, note) if note else None


def _describe_system(event: DiscussionEvent) -> str:
    """Describe a SYSTEM event; a grant is left out, as the speech follows."""
    details = event.details
    match event.action:
        case "GRANT":
            return ""
        case "OPENED":
            return f"Those who discuss: {', '.join(map(str, details.get('agents', [])))}."
        case "JOINED":
            return f"{details.get('speaker')} takes part."
        case action if action == PASSED_OVER:
            return f"{details.get('speaker')} is passed over: {details.get('reason')}."
        case action if action == PHASE_TRANSITION:
            return f"From {details.get('from')} to {details.get('to')}."
        case _:
            return event.text


def _line(event: DiscussionEvent) -> str:
    """Write the content of an intent or a vote on one line."""
    match event.content:
        case {"line": line, "urgency": urgency}:
            return f"{line} (urgency {urgency})"
        case {"ballot": ballot, "reason": reason}:
            return f"{ballot}: {reason}"
        case {"ballot": ballot}:
            return str(ballot)
        case {"counts": dict(counts), **others}:
            numbers = ", ".join(f"{name} {number}" for name, number in counts.items())
            return f"{numbers}; winner: {others.get('winner', 'none')}"
    return event.text
