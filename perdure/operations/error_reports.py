"""Reports of expected errors: code, message, hint and exit code."""

from dataclasses import dataclass

from perdure.embedded.errors import (
    DiskFull,
    EmbeddedError,
    FolderTaken,
    FolderUnusable,
    PortTaken,
)
from perdure.errors import (
    ClientError,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    TimedOut,
    Unreachable,
)
from perdure.settings.errors import SettingsError
from perdure.storage.errors import StoreError, StoreRefused, StoreUnavailable, UnsafeStore
from perdure.testing.errors import ScriptError

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_NOT_FOUND = range(4)
EXIT_CONFLICT, EXIT_TIMED_OUT, EXIT_UNREACHABLE = range(4, 7)

EXPECTED_ERRORS = (ClientError, StoreError, SettingsError, ScriptError, EmbeddedError)

# The first matching class decides, so subclasses stand before their base class.
ERROR_CODES: dict[type[Exception], tuple[str, int]] = {
    Invalid: ("invalid", EXIT_USAGE),
    NotFound: ("not_found", EXIT_NOT_FOUND),
    Forbidden: ("forbidden", EXIT_CONFLICT),
    Conflict: ("conflict", EXIT_CONFLICT),
    TimedOut: ("timed_out", EXIT_TIMED_OUT),
    Unreachable: ("unreachable", EXIT_UNREACHABLE),
    SettingsError: ("settings", EXIT_USAGE),
    ScriptError: ("script", EXIT_USAGE),
    FolderTaken: ("folder_taken", EXIT_CONFLICT),
    FolderUnusable: ("folder_unusable", EXIT_USAGE),
    PortTaken: ("port_taken", EXIT_CONFLICT),
    DiskFull: ("disk_full", EXIT_UNREACHABLE),
    EmbeddedError: ("stack_failed", EXIT_UNREACHABLE),
    UnsafeStore: ("unsafe_store", EXIT_USAGE),
    StoreRefused: ("store_refused", EXIT_USAGE),
    StoreUnavailable: ("store_unavailable", EXIT_UNREACHABLE),
    StoreError: ("damaged", EXIT_FAILED),
}


@dataclass(frozen=True)
class ErrorReport:
    """The report of a failed command."""

    code: str
    message: str
    hint: str
    exit_code: int


def report_error(error: Exception) -> ErrorReport:
    """Build the report of an error whose class is in EXPECTED_ERRORS."""
    code, exit_code = next(codes for kind, codes in ERROR_CODES.items() if isinstance(error, kind))
    return ErrorReport(code, str(error), getattr(error, "hint", ""), exit_code)
