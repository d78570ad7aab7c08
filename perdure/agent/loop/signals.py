"""What a signal may be: a name, data of bounded size, and an id of the sender's."""

import json
import re

from pydantic import JsonValue

from perdure.agent.loop.inbox import Signal, json_size
from perdure.events.nesting import MAX_DEPTH, exceeds_depth
from perdure.events.validation_errors import quote

MAX_SIGNAL_BYTES = 32 * 1024
"""Bytes of a signal as JSON."""

SIGNAL_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
SIGNAL_ID_PATTERN = r"^[ !#-\[\]-~]{1,100}$"
"""The pattern of a sender's id: ASCII of one byte a character in JSON."""

NAME_RULE = "letters, digits, dots, hyphens and underscores, 64 at most"


def is_signal_name(name: str) -> bool:
    return re.fullmatch(SIGNAL_NAME_PATTERN[1:-1], name) is not None


def is_json(data: JsonValue) -> bool:
    """Tell whether others can read the data, of bounded depth, as JSON in UTF-8."""
    try:
        json.dumps(data, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return False
    return True


def find_signal_error(signal: Signal) -> str | None:
    """Return a sentence on what is wrong with a signal, or None if it can be recorded."""
    if not is_signal_name(signal.name):
        return f"{quote(signal.name)} is no name of a signal: it has {NAME_RULE}."
    if re.fullmatch(SIGNAL_ID_PATTERN[1:-1], signal.signal_id) is None:
        return "A signal_id has 1 to 100 ASCII characters, without quotes and backslashes."
    if exceeds_depth(signal.data):
        return f"The data of a signal is at most {MAX_DEPTH} levels deep: put it into a file."
    if not is_json(signal.data):
        return "The data of a signal is JSON: whole characters and finite numbers."
    if (size := json_size(signal)) > MAX_SIGNAL_BYTES:
        return (
            f"The signal has {size:,} bytes and the limit is {MAX_SIGNAL_BYTES:,}: send where the "
            "data is, such as the address of a file."
        )
    return None
