"""Markdown as HTML that is safe in a page of ours: no HTML of the text's own, no requests."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup

MAX_RENDERED_CHARS = 200_000
"""Length of a text beyond which it is shown as it is, since parsing takes seconds per megabyte."""

LINK_SCHEMES = ("http://", "https://", "mailto:")


def render_markdown(text: str) -> Markup:
    """Render a text; raw HTML is shown as text, and an image as a link."""
    if len(text) > MAX_RENDERED_CHARS:
        return Markup("<pre>{}</pre>").format(text)
    return Markup(_parser().render(text))


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True, "xhtmlOut": False})
    parser.enable(["table", "strikethrough"])
    parser.validateLink = _is_safe_link  # type: ignore[method-assign] # how markdown-it is told
    parser.add_render_rule("link_open", _open_link)
    parser.disable("image")  # it would tell its host who reads the page: only its link is left
    return parser


def _is_safe_link(url: str) -> bool:
    return url.lower().startswith(LINK_SCHEMES)


def _open_link(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any
) -> str:
    tokens[index].attrSet("rel", "noopener noreferrer")
    return renderer.renderToken(tokens, index, options, env)
