"""The reports of expected errors."""

import pytest

from perdure.embedded.errors import FolderTaken, FolderUnusable, ProcessFailed
from perdure.errors import Conflict, Invalid, NotFound, TimedOut, Unreachable
from perdure.operations.error_reports import report_error
from perdure.settings.errors import SettingsError
from perdure.storage.errors import (
    Altered,
    Damaged,
    Missing,
    StoreRefused,
    StoreUnavailable,
    UnsafeStore,
)
from perdure.testing.errors import ScriptError


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (Damaged(4, "key"), 1),
        (Missing(4, "key"), 1),
        (Altered("key"), 1),
        (Invalid("no"), 2),
        (SettingsError("no"), 2),
        (ScriptError("no"), 2),
        (StoreRefused("no"), 2),
        (UnsafeStore("no"), 2),
        (FolderUnusable("no"), 2),
        (NotFound("no"), 3),
        (Conflict("no"), 4),
        (FolderTaken("no"), 4),
        (TimedOut("no"), 5),
        (Unreachable("no"), 6),
        (StoreUnavailable("no"), 6),
        (ProcessFailed("no"), 6),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_each_error_has_its_exit_code(error: Exception, exit_code: int) -> None:
    assert report_error(error).exit_code == exit_code


def test_the_report_contains_the_hint() -> None:
    failure = report_error(Conflict("It is closed.", "Start another."))
    assert (failure.code, failure.message, failure.hint) == (
        "conflict",
        "It is closed.",
        "Start another.",
    )
