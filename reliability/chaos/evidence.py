"""The folder of the files of servers and workers."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass
class EvidenceFolder:
    """`keep` says whether the folder stays: what went wrong by chance is seen only once."""

    path: Path
    keep: bool


@contextmanager
def evidence_folder(keep: bool) -> Iterator[EvidenceFolder]:
    folder = EvidenceFolder(Path(tempfile.mkdtemp(prefix="chaos-")), keep)
    try:
        yield folder
    finally:
        if folder.keep:
            print(f"Logs and stored objects are in {folder.path}.", file=sys.stderr)
        else:
            shutil.rmtree(folder.path)
