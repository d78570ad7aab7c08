"""The ids of messages that a state has forgotten: a state is small, and a message may come twice.

The newest ids are in the state. Of the older ones it knows enough to tell of nearly every new id
that it is none of them; for the rest the log is asked: a repeat is recognized however late it is.
"""

import re

from perdure.events.base import Frozen

MAX_MESSAGE_IDS = 300
"""Message ids that a state has, to recognize repeated messages."""

MAX_MESSAGE_ID_BYTES = 24 * 1024
"""Bytes of all message ids of a state: the largest state must fit into a Temporal payload."""

_SORTABLE = re.compile(r"([0-9a-f]{8}-[0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
"""A UUID of version 7, which begins with its time."""


class ForgottenIds(Frozen):
    """The ids that were forgotten."""

    through_seq: int
    """The slot of the newest message with such an id."""
    until: str = ""
    """The greatest time of those that are UUIDs of version 7."""
    has_others: bool = False
    """Whether some are of another form."""


def remember_id(
    seqs: dict[str, int], forgotten: ForgottenIds | None, message_id: str, seq: int
) -> tuple[dict[str, int], ForgottenIds | None]:
    """Return the ids with one more, and what is known of those that had to be forgotten for it."""
    kept = {**seqs, message_id: seq}
    while len(kept) > MAX_MESSAGE_IDS or sum(map(len, kept)) > MAX_MESSAGE_ID_BYTES:
        oldest = next(iter(kept))
        forgotten = _forget(forgotten, oldest, kept.pop(oldest))
    return kept, forgotten


def may_be_forgotten(forgotten: ForgottenIds | None, message_id: str) -> bool:
    """Tell whether an id that the state does not have may be one that it has forgotten.

    Equal UUIDs have equal times: one that is newer than all that were forgotten is none of them.
    """
    if forgotten is None:
        return False
    match = _SORTABLE.fullmatch(message_id)
    return match[1] <= forgotten.until if match else forgotten.has_others


def _forget(forgotten: ForgottenIds | None, message_id: str, seq: int) -> ForgottenIds:
    before = forgotten or ForgottenIds(through_seq=seq)
    match = _SORTABLE.fullmatch(message_id)
    return ForgottenIds(
        through_seq=max(before.through_seq, seq),
        until=max(before.until, match[1]) if match else before.until,
        has_others=before.has_others or match is None,
    )
