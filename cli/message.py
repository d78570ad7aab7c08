"""A message as it is given on the command line."""

import sys
from collections.abc import Sequence

from agent.inbox import Said, fault
from client.errors import Invalid


def message_of(argument: str, images: Sequence[str] = ()) -> Said:
    """Its text is the argument, or all of stdin where that is `-`.

    Raises Invalid where it cannot be sent: nothing is started for what nobody would take.
    """
    try:
        text = sys.stdin.read() if argument == "-" else argument
    except UnicodeDecodeError as error:
        raise Invalid("What was given on stdin is no text in UTF-8: convert it first.") from error
    message = Said(text=text, images=tuple(images))
    if wrong := fault(message):
        raise Invalid(wrong)
    return message
