"""A self-contained page: no script, no other host, images embedded.

All text is escaped; if a browser still found something to run, the page's own policy forbids it.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from perdure.events.content import Content, TextContent, join_text
from perdure.events.entry import Entry
from perdure.events.messages import MessageEvent, SystemPromptEvent
from perdure.events.tools import ActionEvent
from perdure.exports.content import SAFE_MEDIA_TYPES, describe_image, is_inline, media_type
from perdure.exports.format import ExportMetadata, single_file_format
from perdure.exports.notes import HOUSEKEEPING_EVENTS, describe_event
from perdure.exports.report.page import render
from perdure.exports.totals import Totals
from perdure.exports.turns import Turn, turns

MAX_UNFOLDED_LINES = 30
"""Lines of a text that are shown at once; a longer one has to be unfolded."""


class Article(NamedTuple):
    """A turn on the page; `folded` are names and texts above its content."""

    turn: Turn
    kind: str
    author: str
    folded: tuple[tuple[str, str], ...] = ()
    parts: tuple[Content, ...] = ()


def write(about: ExportMetadata, entries: Iterable[Entry]) -> Iterator[bytes]:
    totals = Totals()
    return render(
        "conversation.html",
        about=about,
        articles=filter(None, map(_article, turns(totals.count(entries)))),
        totals=totals,
        max_lines=MAX_UNFOLDED_LINES,
        describe_image=describe_image,
        is_embeddable=_is_embeddable,
    )


def _article(turn: Turn) -> Article | None:
    thought = (("thought", turn.reasoning),) if turn.reasoning else ()
    match turn.event:
        case SystemPromptEvent() as event:
            tools = ((f"tool {tool.name}", tool.description) for tool in event.tools)
            return Article(turn, "system", "system", (("prompt", join_text(turn.content)), *tools))
        case MessageEvent() as event:
            name = f"{event.source} ({event.sender})" if event.sender else event.source
            return Article(turn, event.source, name, thought, turn.content)
        case ActionEvent():
            return Article(turn, "agent", "agent", thought, turn.content)
        case event if not (text := describe_event(event)):
            return None
        case event if isinstance(event, HOUSEKEEPING_EVENTS):
            return Article(turn, "note", event.kind, ((event.kind, text),))
        case event:
            return Article(turn, "note", event.kind, parts=(TextContent(text=text),))


def _is_embeddable(url: str) -> bool:
    """Check whether the page may show the image: it sends no requests for one elsewhere."""
    return is_inline(url) and media_type(url) in SAFE_MEDIA_TYPES


HTML = single_file_format("html", ".html", "one page for people, that needs nothing else", write)
