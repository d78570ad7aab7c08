"""What a conversation is called."""

LONGEST = 80
"""Characters of a title."""

ASKED = """\
Give the conversation that begins with this message a title of at most eight words. Answer with \
the title alone, in the language of the message.

<message>
{message}
</message>
"""


def shortened(words: str) -> str:
    """The first line of what was said, as a title; nothing where nothing was said."""
    line = next((line.strip() for line in words.splitlines() if line.strip()), "")
    plain = " ".join(line.strip("#*\"'` ").split())
    return plain if len(plain) <= LONGEST else f"{plain[: LONGEST - 1].rstrip()}…"
