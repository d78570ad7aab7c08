"""The title of a conversation."""

MAX_TITLE_CHARS = 80

TITLE_PROMPT = """\
Give the conversation that begins with this message a title of at most eight words. Answer with \
the title alone, in the language of the message.

<message>
{message}
</message>
"""


def derive_title(text: str) -> str:
    """Make a title of the first line of a text; empty for an empty text."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    plain = " ".join(line.strip("#*\"'` ").split())
    return plain if len(plain) <= MAX_TITLE_CHARS else f"{plain[: MAX_TITLE_CHARS - 1].rstrip()}…"
