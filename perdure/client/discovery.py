"""The error of a client that finds no servers."""

from pathlib import Path

from perdure.errors import Unreachable


class NoServers(Unreachable):
    """No store is set, and no stack runs in the data folder."""

    def __init__(self, data: Path) -> None:
        super().__init__(
            f"No store is set, and no stack runs in {data}.",
            "Start one with `perdure dev`, or set PERDURE_STORE and TEMPORAL_ADDRESS.",
        )
