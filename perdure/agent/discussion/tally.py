"""The tally of a vote."""

from perdure.events.base import Frozen


class Tally(Frozen):
    """The ballots of the last vote, counted; `winner` is None without a majority."""

    phase: str
    counts: dict[str, int]
    winner: str | None = None
