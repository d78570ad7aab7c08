"""Where a command writes what it was asked to make."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from client.errors import Invalid


@contextmanager
def opened(output: str) -> Iterator[BinaryIO]:
    """The file, made anew once all of it is written; `-` is stdout.

    Raises Invalid where it cannot be.
    """
    if output == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(output)
    draft = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as file:
            yield file
        draft.replace(path)
    except OSError as error:
        raise Invalid(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        draft.unlink(missing_ok=True)
