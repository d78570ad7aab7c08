"""The page is escaped and loads nothing from elsewhere."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.events.actions import FileEditorAction, FinishAction
from perdure.exports.html import HTML
from tests.builders import action, agent, entries, user
from tests.exports.checks import export_files
from tests.exports.sample_log import (
    ABOUT,
    EXTERNAL_IMAGE,
    PIXEL,
    SECRET,
    entries_of,
    sample_entries,
    with_images,
)

ALLOWED_TAGS = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "header",
    "h1",
    "main",
    "article",
    "small",
    "b",
    "a",
    "div",
    "span",
    "code",
    "em",
    "h2",
    "h3",
    "hr",
    "br",
    "ul",
    "ol",
    "li",
    "blockquote",
    "details",
    "summary",
    "pre",
    "img",
    "footer",
    "p",
    "strong",
}
VOID_TAGS = {"meta", "img", "hr", "br"}


class Page(HTMLParser):
    """Parses the page as a browser does."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.links: list[str | None] = []
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        if tag == "a":
            self.links += [value for name, value in attrs if name == "href"]
        else:
            self.attributes += attrs
        self.open += [] if tag in VOID_TAGS else [tag]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def page(log: list) -> str:  # type: ignore[type-arg]
    return export_files(HTML, ABOUT, log)[""].decode()


def test_the_page_is_well_formed_and_runs_no_script() -> None:
    seen = Page(page(sample_entries()))
    assert seen.names <= ALLOWED_TAGS
    assert seen.open == []
    assert not [name for name, _ in seen.attributes if name.startswith("on")]


def test_the_page_requests_no_other_host() -> None:
    html = page(sample_entries())
    sources = [value for name, value in Page(html).attributes if name in ("src", "href")]
    assert sources == [PIXEL, PIXEL]
    assert f"[image: {EXTERNAL_IMAGE}]" in html
    assert "default-src 'none'" in html


def agent_page(words: str) -> Page:
    return Page(page(entries([user("Go on."), agent(words)])))


def test_markdown_is_rendered() -> None:
    seen = agent_page(
        "## Sum\n\nIt is **5**:\n\n| a | b |\n|---|---|\n| 2 | 3 |\n\n```\n2 + 3\n```"
    )
    assert {"h2", "strong", "table", "td", "pre", "code"} <= seen.names


@pytest.mark.parametrize(
    ("words", "target"),
    [
        ("[a page](https://example.org/a?b=1&c=2)", "https://example.org/a?b=1&c=2"),
        ("![a cat](https://pictures.example/cat.jpg)", "https://pictures.example/cat.jpg"),
        ("[run](javascript:alert(1))", None),
        ("[open](file:///etc/passwd)", None),
        ("[data](data:text/html,<b>x</b>)", None),
    ],
)
def test_only_links_to_the_web_stay_links_and_images_become_links(
    words: str, target: str | None
) -> None:
    seen = agent_page(words)
    links = [link for link in seen.links if link and not link.startswith("#e")]
    assert links == ([target] if target else [])
    assert "img" not in seen.names


def test_a_call_is_folded_under_a_line_that_says_what_it_did() -> None:
    edit = FileEditorAction(command="str_replace", path="a.py", old_str="x = 1", new_str="x = 2")
    call = action("file_editor").model_copy(update={"action": edit})
    html = page(entries([user("Go on."), call]))
    assert "<code>str_replace a.py</code>" in html
    assert '<span class="removed">- x = 1</span><span class="added">+ x = 2</span>' in html


def test_the_report_of_finish_stands_as_the_agents_words() -> None:
    report = action("finish").model_copy(update={"action": FinishAction(message="**Done.**")})
    html = page(entries([user("Go on."), report]))
    assert "<strong>Done.</strong>" in html
    assert "<b>finish</b>" not in html


def test_an_answer_that_was_cut_off_says_so() -> None:
    cut = agent("Half an").model_copy(update={"truncated": True})
    html = page(entries([user("Go on."), cut, agent("Done.")]))
    assert html.count("Agent (cut off at its length limit)") == 1


def test_the_bookkeeping_of_a_conversation_is_left_out() -> None:
    assert "ConversationStateUpdateEvent" not in page(sample_entries())


def test_the_page_has_a_viewport_for_phones() -> None:
    assert 'name="viewport"' in page(sample_entries())


def test_the_mask_of_a_secret_is_text_like_any_other() -> None:
    assert SECRET not in page(sample_entries())
    assert "&lt;secret:TOKEN&gt;" in page(sample_entries())


def test_an_image_that_could_hold_a_script_is_named() -> None:
    urls = ("data:image/svg+xml;base64,PHN2Zz4=", "javascript:alert(1)", 'data:image/png,"x')
    html = page(entries_of([(with_images(user(), *urls), None)]))
    assert "img" not in Page(html).names
    assert "[image: image/svg+xml]" in html


@settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)
@given(st.text(alphabet=st.sampled_from("<>&\"'/a=! -\x00\x1b]\u2028\u202e"), max_size=40))
def test_any_message_is_escaped_text(words: str) -> None:
    html = page(entries([user(words), agent(words)]))
    assert Page(html).names <= ALLOWED_TAGS
    assert not re.search("[\x00-\x08\x0e-\x1f]", html)
