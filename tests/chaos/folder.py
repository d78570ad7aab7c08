"""Where all that the servers and workers write goes."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def folder_of_its_own(keep: bool) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    try:
        yield folder
    finally:
        if keep:
            print(f"Logs and stored objects are in {folder}.", file=sys.stderr)
        else:
            shutil.rmtree(folder)
