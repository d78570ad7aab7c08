"""What each error means for the exit code."""

import pytest

from cli.failures import failure_of
from client.errors import Conflict, Invalid, NotFound, TimedOut, Unreachable
from embedded.errors import FolderTaken, FolderUnusable, ProcessFailed
from models.script import ScriptError
from settings.settings import SettingsError
from storage.errors import Altered, Damaged, Missing, StoreRefused, StoreUnavailable, UnsafeStore


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
def test_the_exit_code_says_whose_turn_it_is(error: Exception, exit_code: int) -> None:
    assert failure_of(error).exit_code == exit_code


def test_what_to_do_comes_with_it() -> None:
    failure = failure_of(Conflict("It is closed.", "Start another."))
    assert (failure.code, failure.message, failure.hint) == (
        "conflict",
        "It is closed.",
        "Start another.",
    )
