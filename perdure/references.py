"""References to code outside of perdure: `module:attribute`, and entry points of packages."""

import traceback
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from perdure.errors import PerdureError
from perdure.user_modules import OURS, USER_MODULES, is_of_user

MAX_LISTED_NAMES = 20
"""Names of a module that are listed in the error that another does not exist."""


class BadReference(PerdureError, ValueError):
    """A reference that leads to nothing; the text is a clause without a full stop."""


def import_reference(reference: str) -> Any:
    """Import the module of a `module:attribute` and return its attribute, which may have dots.

    A module in the user's own folders comes before an installed one of that name; every other
    import finds these folders last, so that they never hide a library. Raises BadReference.
    """
    name, _, attribute = reference.partition(":")
    if not name or not attribute:
        raise BadReference("it is not written as module:attribute")
    if not name.startswith(OURS):
        add_user_folder(Path.cwd())
    value: Any = _import_module(name)
    for part in attribute.split("."):
        if not hasattr(value, part):
            public = ", ".join(_public_names(value)) or "nothing of its own"
            raise BadReference(f"module {name!r} has no attribute {attribute!r}: it has {public}")
        value = getattr(value, part)
    return value


def add_user_folder(folder: Path) -> None:
    """Have references find modules in `folder`, and other imports as well, behind all else."""
    USER_MODULES.add_folder(folder)


def is_reference(text: str) -> bool:
    """Check whether a text has the form of a `module:attribute`."""
    name, _, attribute = text.partition(":")
    return bool(name and attribute)


@cache
def find_entry_points(group: str) -> Mapping[str, str]:
    """Return the `module:attribute` of each entry point that installed packages have in a group."""
    entries = metadata.entry_points(group=group)
    return {point.name: point.value.partition("[")[0].strip() for point in entries}


def load_entry_point(group: str, name: str) -> Any:
    """Import what packages have under `name`. Raises BadReference, also if there is none."""
    entries = find_entry_points(group)
    if name not in entries:
        available = ", ".join(entries) or "none"
        raise BadReference(f"no package has {name!r} among its {group!r}: there is {available}")
    return import_reference(entries[name])


def load_named(group: str, name: str) -> Any:
    """Import a `module:attribute`, or else the entry point of that name. Raises BadReference."""
    return import_reference(name) if is_reference(name) else load_entry_point(group, name)


def _import_module(name: str) -> ModuleType:
    try:
        return USER_MODULES.load(name)
    except (Exception, SystemExit) as error:
        # A user's module may raise anything; whoever named it gets one sentence.
        if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
            message = f"module {name!r} cannot be found: it is not installed, and not in"
            raise BadReference(f"{message} {', '.join(USER_MODULES.search_path)}") from error
        reason = f"{type(error).__name__}: {getattr(error, 'msg', error)}{_place_of(error)}"
        raise BadReference(f"module {name!r} cannot be imported: {reason}") from error


def _place_of(error: BaseException) -> str:
    """Return the file and line of a user's module at which an import failed."""
    if isinstance(error, SyntaxError):
        return f", at {error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if is_of_user(Path(each.filename))]
    return f", at {own[-1].filename}:{own[-1].lineno}" if own else ""


def _public_names(value: Any) -> list[str]:
    """List what a module has of its own, not what it imports."""
    own = getattr(value, "__name__", None)
    return [
        name
        for name, item in vars(value).items()
        if not name.startswith("_")
        and not isinstance(item, ModuleType)
        and (not callable(item) or getattr(item, "__module__", own) == own)
    ][:MAX_LISTED_NAMES]
