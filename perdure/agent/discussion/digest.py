"""A summary without a model: who said what, and how the vote went."""

from collections.abc import Iterable, Mapping

from perdure.events.discussion import SYSTEM, DiscussionEvent
from perdure.wording import count

MAX_QUOTE_CHARS = 240


def digest(phase: str, events: Iterable[DiscussionEvent]) -> str:
    """List the last speech of each speaker of a phase, and the last tally."""
    of_phase = [event for event in events if event.meta and event.meta.phase == phase]
    speeches = [event for event in of_phase if event.type == "SPEECH"]
    lines = [f"Phase “{phase}”: {count(len(speeches), 'speech', 'speeches')}."]
    last = {event.speaker: event.text for event in speeches}
    lines += [f"{speaker}: {_quote(text)}" for speaker, text in last.items()]
    tallies = [event for event in of_phase if event.type == "VOTE" and event.speaker == SYSTEM]
    if tallies and isinstance(tallies[-1].content, dict):
        lines.append(_describe_tally(tallies[-1].content))
    return "\n".join(lines)


def _describe_tally(content: Mapping[str, object]) -> str:
    counts = content.get("counts")
    ballots = counts.items() if isinstance(counts, dict) else ()
    numbers = ", ".join(f"{option} {number}" for option, number in ballots)
    winner = content.get("winner")
    return f"Vote: {numbers}; {f'{winner} wins' if winner else 'no majority'}."


def _quote(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_QUOTE_CHARS else f"{line[: MAX_QUOTE_CHARS - 1]}…"
