"""The errors that were foreseen: what each is called, how the command exits, what to do."""

from dataclasses import dataclass

from client.errors import ClientError, Conflict, Invalid, NotFound, TimedOut, Unreachable
from embedded.errors import EmbeddedError, FolderTaken, FolderUnusable
from models.script import ScriptError
from settings.settings import SettingsError
from storage.errors import StoreError, StoreRefused, StoreUnavailable, UnsafeStore

OK, FAILED, USAGE, NOT_FOUND, CONFLICT, TIMED_OUT, UNREACHABLE = range(7)

FORESEEN = (ClientError, StoreError, SettingsError, ScriptError, EmbeddedError)

# The first class that fits names the error; those of one family stand before their ancestor.
CODES: tuple[tuple[type[Exception], str, int], ...] = (
    (Invalid, "invalid", USAGE),
    (NotFound, "not_found", NOT_FOUND),
    (Conflict, "conflict", CONFLICT),
    (TimedOut, "timed_out", TIMED_OUT),
    (Unreachable, "unreachable", UNREACHABLE),
    (SettingsError, "settings", USAGE),
    (ScriptError, "script", USAGE),
    (FolderTaken, "folder_taken", CONFLICT),
    (FolderUnusable, "folder_unusable", USAGE),
    (EmbeddedError, "stack_failed", UNREACHABLE),
    (UnsafeStore, "unsafe_store", USAGE),
    (StoreRefused, "store_refused", USAGE),
    (StoreUnavailable, "store_unavailable", UNREACHABLE),
    (StoreError, "damaged", FAILED),
)


@dataclass(frozen=True)
class Failure:
    """Why a command did not do what it was asked for."""

    code: str
    message: str
    hint: str
    exit_code: int


def failure_of(error: Exception) -> Failure:
    """One of FORESEEN, as it is told."""
    fitting = ((code, exit_code) for kind, code, exit_code in CODES if isinstance(error, kind))
    code, exit_code = next(fitting)
    return Failure(code, str(error), getattr(error, "hint", ""), exit_code)
