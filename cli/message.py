"""A message as it is given on the command line."""

import sys
from collections.abc import Sequence

from agent.inbox import Said, fault
from client.errors import Invalid


def message_of(argument: str, images: Sequence[str] = ()) -> str:
    """The argument itself, or all of stdin where it is `-`. Raises Invalid where it cannot be sent.

    Known here, so that nothing is started for a message that nobody would take.
    """
    text = sys.stdin.read() if argument == "-" else argument
    if wrong := fault(Said(text=text, images=tuple(images))):
        raise Invalid(wrong)
    return text
