"""The page: all of it escaped, and nothing of it from elsewhere."""

import re
from html.parser import HTMLParser

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exports.html import HTML
from tests.builders import agent, entries, user
from tests.exports.checks import exported
from tests.exports.story import ABOUT, ELSEWHERE, PIXEL, SECRET, logged, story, with_images

HARMLESS = {
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
    "section",
    "details",
    "summary",
    "pre",
    "img",
    "footer",
    "p",
    "strong",
}
LEFT_OPEN = {"meta", "img"}


class Page(HTMLParser):
    """What a browser would make of it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes += attrs
        self.open += [] if tag in LEFT_OPEN else [tag]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def page(log: list) -> str:  # type: ignore[type-arg]
    return exported(HTML, ABOUT, log)[""].decode()


def test_it_is_well_formed_and_runs_nothing() -> None:
    seen = Page(page(story()))
    assert seen.names <= HARMLESS
    assert seen.open == []
    assert not [name for name, _ in seen.attributes if name.startswith("on")]


def test_it_asks_no_other_host() -> None:
    html = page(story())
    sources = [value for name, value in Page(html).attributes if name in ("src", "href")]
    assert sources == [PIXEL, PIXEL]
    assert f"[image: {ELSEWHERE}]" in html
    assert "default-src 'none'" in html


def test_it_is_made_for_a_phone_too() -> None:
    assert 'name="viewport"' in page(story())


def test_the_mask_of_a_secret_is_text_like_any_other() -> None:
    assert SECRET not in page(story())
    assert "&lt;secret:TOKEN&gt;" in page(story())


def test_an_image_that_could_hold_a_script_is_named() -> None:
    urls = ("data:image/svg+xml;base64,PHN2Zz4=", "javascript:alert(1)", 'data:image/png,"x')
    html = page(logged([(with_images(user(), *urls), None)]))
    assert "img" not in Page(html).names
    assert "[image: image/svg+xml]" in html


@settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)
@given(st.text(alphabet=st.sampled_from("<>&\"'/a=! -\x00\x1b]\u2028\u202e"), max_size=40))
def test_whatever_was_said_is_text(said: str) -> None:
    html = page(entries([user(said), agent(said)]))
    assert Page(html).names <= HARMLESS
    assert not re.search("[\x00-\x08\x0e-\x1f]", html)
