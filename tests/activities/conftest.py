import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A folder that other users of the machine reach: pytest's own are closed to them."""
    with tempfile.TemporaryDirectory(prefix="open-") as made:
        path = Path(made)
        path.chmod(0o755)
        yield path
