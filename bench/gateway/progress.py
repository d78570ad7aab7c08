"""What a run is about to do, for whoever waits for it."""

import sys


def tell(work: str) -> None:
    """Say so on standard error: standard output is for the report."""
    print(f"… {work}", file=sys.stderr, flush=True)
