"""Shares of the workers where tasks of a queue wait: Temporal's priority and fairness keys."""

import hashlib

from temporalio.common import Priority

MAX_KEY_BYTES = 64
"""Temporal's limit on the length of a fairness key."""


def user_priority(user_id: str) -> Priority:
    """Return the priority of a user's own work: each user has the same share, however much waits.

    Its children and their steps inherit it.
    """
    return Priority(fairness_key=make_key(user_id))


def make_key(name: str) -> str:
    """Return a fairness key for a name: a hash of it where the name is too long."""
    if len(name.encode()) <= MAX_KEY_BYTES:
        return name
    return hashlib.sha256(name.encode()).hexdigest()
