"""Where all that the servers and workers write goes."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Evidence:
    """`keep` says whether the folder stays: what went wrong by chance is seen only once."""

    path: Path
    keep: bool


@contextmanager
def folder_of_its_own(keep: bool) -> Iterator[Evidence]:
    found = Evidence(Path(tempfile.mkdtemp(prefix="chaos-")), keep)
    try:
        yield found
    finally:
        if found.keep:
            print(f"Logs and stored objects are in {found.path}.", file=sys.stderr)
        else:
            shutil.rmtree(found.path)
