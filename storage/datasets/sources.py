"""Files of a sample that lie beside the dataset."""

import base64
from pathlib import Path

from evaluation.sample import Encoded, Misfit, Sample, Source

LARGEST = 16 * 1024 * 1024
"""Bytes of a file that a sample brings along."""


def check(sample: Sample, folder: Path) -> None:
    """Raises Misfit where a file cannot be had."""
    for file in sample.files.values():
        if isinstance(file, Source):
            _path(file, folder)


def with_sources(sample: Sample, folder: Path) -> Sample:
    """The sample with what its files hold. Raises Misfit and OSError."""
    files = {
        name: _content(_path(file, folder)) if isinstance(file, Source) else file
        for name, file in sample.files.items()
    }
    return sample.model_copy(update={"files": files})


def _path(file: Source, folder: Path) -> Path:
    """A dataset may come from anywhere, and the machine's own files are none of its business."""
    try:
        path = (folder / file.source).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise Misfit(f"{file.source!r} leads out of the dataset's folder")
        if not path.is_file():
            raise Misfit(f"there is no file {file.source!r} beside the dataset")
        size = path.stat().st_size
    except (OSError, ValueError) as error:
        raise error if isinstance(error, Misfit) else Misfit(f"{file.source!r}: {error}") from error
    if size > LARGEST:
        raise Misfit(f"{file.source!r} has {size:,} bytes, and {LARGEST:,} is the most")
    return path


def _content(path: Path) -> str | Encoded:
    content = path.read_bytes()
    try:
        return content.decode()
    except UnicodeDecodeError:
        return Encoded(base64=base64.b64encode(content).decode())
