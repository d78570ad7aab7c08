"""What is wrong with what somebody sent, in a sentence that is never longer than they can read."""

from itertools import islice

from pydantic import ValidationError

MOST_NAMED = 5
"""Faults of one thing that are told."""

LONGEST = 120
"""Characters of what was sent that are told again."""


def misfit(error: ValidationError) -> str:
    """Where each fault is, and what it is."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    named = (_named(".".join(map(str, one["loc"])), one["msg"]) for one in faults)
    more = [f"and {len(faults) - MOST_NAMED} more"] if len(faults) > MOST_NAMED else []
    return "; ".join([*islice(named, MOST_NAMED), *more])


def quoted(text: str) -> str:
    """What was sent, as far as it is told again; also where no encoding knows it."""
    return repr(text if len(text) <= LONGEST else f"{text[:LONGEST]}…")


def _named(where: str, what: str) -> str:
    plain = f"{where[:LONGEST]}: {what[: 2 * LONGEST]}" if where else what[: 2 * LONGEST]
    return plain.encode(errors="replace").decode()
