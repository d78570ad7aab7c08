"""A line of the log for each start of a conversation's workflow."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

logger = logging.getLogger("perdure.worker.start")


@dataclass
class StartNote:
    """The kind of a start: of a new conversation, or of one that was restored."""

    restored: bool = False


@contextmanager
def log_start() -> Iterator[StartNote]:
    """Log how long the body takes to start a conversation, and whether that succeeds."""
    note, began = StartNote(), time.monotonic()
    try:
        yield note
    except BaseException as error:
        _log(note, began, type(error).__name__)
        raise
    _log(note, began, None)


def _log(note: StartNote, began: float, failure: str | None) -> None:
    seconds = time.monotonic() - began
    what = "restored from its log" if note.restored else "begun"
    fields = {
        "duration": round(seconds, 6),
        "success": failure is None,
        "restored": note.restored,
    }
    if failure is None:
        logger.info("a conversation was %s in %.3f s", what, seconds, extra=fields)
    else:
        sentence = "a conversation was not %s: %s after %.3f s"
        logger.warning(sentence, what, failure, seconds, extra=fields)
