"""The context of the application, which goes with a message and is not shown with it."""

from collections.abc import Sequence

from perdure.gateway.ag_ui.requests import Context

BEGIN, END = "\n\n<context>\n", "\n</context>"


def add_context(text: str, context: Sequence[Context]) -> str:
    """Return a text for an agent, with what the application says beside it."""
    lines = [f"{each.description}: {each.value}" for each in context]
    return f"{text}{BEGIN}{chr(10).join(lines)}{END}" if lines else text


def remove_context(text: str) -> str:
    """Return the text as the user has written it."""
    return text[: text.rindex(BEGIN)] if text.endswith(END) and BEGIN in text else text
