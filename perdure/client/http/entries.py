"""The entries of a log, as a gateway sends them."""

import json
from collections.abc import Mapping
from typing import Any

from perdure.events.entry import Entry, parse_entry
from perdure.storage.errors import Damaged


def parse_served_entry(seq: int, fields: Mapping[str, Any]) -> Entry:
    """Parse an entry whose bytes are those that the store has. Raises Damaged.

    Logs are written as this writes JSON; the checksum within tells whether that holds.
    """
    body = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
    try:
        return parse_entry(seq, body)
    except ValueError as error:
        raise Damaged(seq, f"event {seq} on its way from the gateway") from error
