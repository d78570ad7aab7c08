"""Discussions as lines and as a page, which is escaped and loads nothing from elsewhere."""

import json
from html.parser import HTMLParser
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from perdure.events.discussion import DiscussionEvent, DiscussionEventType
from perdure.exports.discussion import write_lines, write_page

TEXTS = st.text(max_size=60) | st.sampled_from(
    [
        "<script>alert(1)</script>",
        "![x](http://evil/x.png)",
        '"><img src=x onerror=y>',
        "# a\n\n- b",
    ]
)


def event(sequence: int, type_: DiscussionEventType, speaker: str, content: Any) -> DiscussionEvent:
    return DiscussionEvent(
        event_id=f"e{sequence}",
        type=type_,
        speaker=speaker,
        content=content,
        timestamp="2024-12-23T12:30:00.000Z",
        session_id="s",
        sequence=sequence,
    )


def system(sequence: int, action: str, **details: Any) -> DiscussionEvent:
    return event(sequence, "SYSTEM", "system", {"action": action, "details": details})


EVENTS = [
    system(1, "OPENED", agents=["ada", "bob"]),
    event(2, "INTENT", "ada", {"urgency": 7, "line": "costs"}),
    event(3, "INTENT", "bob", {"urgency": 1, "line": "rest"}),
    system(4, "GRANT", speaker="ada"),
    event(5, "SPEECH", "ada", "It costs **less**."),
    system(6, "PASSED_OVER", speaker="bob", reason="it said nothing"),
    event(7, "VOTE", "ada", {"ballot": "yes", "reason": "of course"}),
    event(8, "VOTE", "system", {"phase": "p", "counts": {"yes": 1, "no": 0}, "winner": "yes"}),
    event(9, "SUMMARY", "moderator", "All agree."),
    system(10, "PHASE_TRANSITION", **{"from": "p", "to": "end"}),
]


def test_an_event_is_a_line_in_the_form_of_the_specification() -> None:
    lines = [json.loads(line) for line in write_lines(EVENTS)]
    assert [DiscussionEvent.model_validate(line) for line in lines] == EVENTS
    assert all("kind" not in line for line in lines)


def test_the_page_shows_speeches_intents_votes_and_summaries() -> None:
    page = b"".join(write_page("s", "Four days?", EVENTS)).decode()
    for text in (
        "Four days?",
        "2 want to speak",
        "costs (urgency 7)",
        "<strong>less</strong>",
        "bob is passed over: it said nothing.",
        "yes: of course",
        "yes 1, no 0; winner: yes",
        "All agree.",
        "From p to end.",
    ):
        assert text in page
    assert 'class="speech c1"' in page
    assert "GRANT" not in page


class Tags(HTMLParser):
    """The names of tags and attributes that a browser would find."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}


@given(TEXTS, TEXTS, TEXTS)
def test_no_text_of_an_agent_becomes_html(speech: str, line: str, topic: str) -> None:
    events = [
        event(1, "INTENT", "ada", {"urgency": 1, "line": line}),
        event(2, "SPEECH", "<b>eve</b>", speech),
        event(3, "VOTE", "ada", {"ballot": line}),
    ]
    tags = Tags()
    tags.feed(b"".join(write_page("s", topic, events)).decode())
    assert not tags.names & {"script", "img", "iframe", "object", "link", "form"}
    assert not [name for name in tags.attributes if name.startswith("on")]
