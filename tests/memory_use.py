"""The memory that this process takes, as Linux counts it.

`tracemalloc` is not for tests beside Temporal's client, whose threads make objects while
`tracemalloc.stop` takes its tables away: a process of these tests has crashed there.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def check_memory_growth(limit: int) -> Iterator[None]:
    """Fail where the body takes more than so many bytes beyond what the process has already."""
    Path("/proc/self/clear_refs").write_text("5")  # forget the highest point so far
    before = _read_status("VmRSS")
    yield
    grown = _read_status("VmHWM") - before
    assert grown < limit, f"the memory grew by {grown:,} bytes, of {limit:,} allowed"


def _read_status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) * 1024
