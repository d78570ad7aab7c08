"""Markdown on a terminal: as rich shows it, with all headings at the left."""

from typing import ClassVar

from rich.console import JustifyMethod
from rich.markdown import Heading, Markdown, MarkdownElement

from perdure.cli.consoles import stdout
from perdure.cli.output import escape_controls, show


class LeftHeading(Heading):
    """A heading at the left; its level shows in its style."""

    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}


class LeftMarkdown(Markdown):
    """Markdown whose headings stand at the left."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": LeftHeading,
    }


def print_markdown(text: str) -> None:
    """Print a message of the agent, as Markdown on a terminal."""
    if not text.strip():
        return
    if stdout.is_terminal:
        stdout.print()
        stdout.print(LeftMarkdown(escape_controls(text), hyperlinks=False), soft_wrap=False)
    else:
        show(text)
