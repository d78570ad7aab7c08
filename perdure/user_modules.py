"""The modules of users: found in their own folders, and imported anew once their files change.

Nothing else is ever reloaded: neither perdure, nor what is installed, nor what a program that
embeds a worker had imported before the first reference.
"""

import importlib
import sys
import sysconfig
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from threading import RLock
from time import time_ns
from types import ModuleType
from typing import TypeAlias

OURS = f"{__package__}."

INSTALLED = ("site-packages", "dist-packages")

Stamp: TypeAlias = tuple[int, int]
"""The time of a file's last change in nanoseconds, and its size."""

NO_FILE: Stamp = (0, 0)


@dataclass
class _Code:
    """The modules imported from one folder; `version` counts its reloads."""

    names: set[str] = field(default_factory=set)
    stamps: dict[str, Stamp] = field(default_factory=dict)
    version: int = 0

    def has_changed(self) -> bool:
        return any(_stamp(file) != stamp for file, stamp in self.stamps.items())


class UserModules:
    """The folders of a process's users, and the import of modules from them.

    Functions of a module that was imported anew keep their old module: what runs is not disturbed.
    """

    def __init__(self) -> None:
        self.folders: list[str] = []
        self.accepts_client_folders = False
        """Whether clients name folders of this machine: only those of one person may."""
        self._client_folder: ContextVar[str | None] = ContextVar("client_folder", default=None)
        self._claimed: dict[str, str] = {}
        self._code: dict[str, _Code] = {}
        self._known: tuple[set[str], int] | None = None
        """The names of all modules after the last import of a user's, and when that was."""
        self._lock = RLock()

    def add_folder(self, folder: Path) -> None:
        """Find modules in `folder`, and have other imports do so as well, behind all else."""
        path = str(folder.absolute())
        if path not in self.folders:
            self.folders.append(path)
        if path not in sys.path:
            sys.path.append(path)

    def use_client_folder(self, folder: str | None) -> None:
        """Search `folder` first in this context, if this process accepts folders of clients."""
        usable = self.accepts_client_folders and folder is not None and Path(folder).is_dir()
        self._client_folder.set(folder if usable else None)

    @property
    def client_folder(self) -> str | None:
        return self._client_folder.get()

    @property
    def search_path(self) -> list[str]:
        """List the folders in the order in which they are searched."""
        first = self.client_folder
        return [first, *(f for f in self.folders if f != first)] if first else list(self.folders)

    def install(self) -> None:
        """Have imports find what references name before all else, and the rest behind it."""
        if _CLAIMED_FINDER not in sys.meta_path:
            sys.meta_path.insert(0, _CLAIMED_FINDER)
            sys.meta_path.append(_CLIENT_FINDER)

    def load(self, name: str) -> ModuleType:
        """Import the module of a reference: ours, or from a user's folder if one has it."""
        if name.startswith(OURS):
            return importlib.import_module(name)
        with self._lock:
            self.install()
            self._forget_other_clients()
            self._claim(name)
            self._note_imports()  # what functions have imported since
            self._known = set(sys.modules), time_ns()
            try:
                return importlib.import_module(name)
            finally:
                self._note_imports()

    def refresh(self) -> int:
        """Forget what was imported from a folder in which a file has changed since.

        Returns a number that is another one after each change in the folders of this context.
        """
        with self._lock:
            self._note_imports()
            folders = self.search_path
            for folder in folders:
                code = self._code.get(folder)
                if code is not None and code.has_changed():
                    self._forget(folder)
                    code.stamps.clear()
                    code.version += 1
            return sum(self._code[folder].version for folder in folders if folder in self._code)

    def claimed_folder(self, name: str) -> str | None:
        """Return the folder of a top package that a reference has named."""
        return self._claimed.get(name)

    def _forget_other_clients(self) -> None:
        """Have modules of two clients' folders never meet under one name."""
        for folder, code in self._code.items():
            if code.names and folder not in self.folders and folder != self.client_folder:
                self._forget(folder)

    def _claim(self, name: str) -> None:
        """Have the top package of a module come from the first folder that has the module."""
        importlib.invalidate_caches()  # a file of this second may be new
        parts = name.split(".")
        for folder in self.search_path:
            path = Path(folder, *parts)
            if path.with_name(f"{path.name}.py").is_file() or (path / "__init__.py").is_file():
                if self._claimed.get(parts[0], folder) != folder:
                    self._forget(self._claimed[parts[0]])
                self._claimed[parts[0]] = folder
                return

    def _note_imports(self) -> None:
        """Note which files have been imported; one that was written meanwhile is read again."""
        if self._known is None:
            return
        (before, began), self._known = self._known, (set(sys.modules), time_ns())
        for name in self._known[0] - before:
            module = sys.modules.get(name)
            if (folder := self._folder_of(module)) is None:
                continue
            code = self._code.setdefault(folder, _Code())
            code.names.add(name)
            if file := getattr(module, "__file__", None):
                stamp = _stamp(file)
                code.stamps[file] = stamp if stamp[0] < began else NO_FILE

    def _folder_of(self, module: ModuleType | None) -> str | None:
        """Return the user's folder that a module is from; None if it is installed, or ours."""
        for location in _locations(module):
            for folder in sorted(self.search_path, key=len, reverse=True):
                path = Path(location)
                if path.is_relative_to(folder) and is_of_user(path):
                    return folder
        return None

    def _forget(self, folder: str) -> None:
        """Have the next import of each module of a folder read its file."""
        code = self._code.get(folder)
        for name in code.names if code else ():
            module = sys.modules.pop(name, None)
            if cached := getattr(module, "__cached__", None):
                # Python takes bytecode for current if the source is as long and of that second.
                Path(cached).unlink(missing_ok=True)
        self._claimed = {name: at for name, at in self._claimed.items() if at != folder}
        if code:
            code.names.clear()


class _ClaimedFinder:
    """A finder of the packages that references name, which come before installed ones."""

    def find_spec(
        self, name: str, path: object = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        folder = USER_MODULES.claimed_folder(name) if path is None else None
        return None if folder is None else PathFinder.find_spec(name, [folder], target)


class _ClientFinder:
    """A finder of what modules of a client's folder import from it, when all others fail."""

    def find_spec(
        self, name: str, path: object = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        folder = USER_MODULES.client_folder if path is None else None
        return None if folder is None else PathFinder.find_spec(name, [folder], target)


def _locations(module: ModuleType | None) -> Iterator[str]:
    if file := getattr(module, "__file__", None):
        yield file
    else:
        yield from getattr(module, "__path__", ())


def is_of_user(path: Path) -> bool:
    """Tell whether a source file is neither installed nor ours."""
    ours = Path(__file__).parent
    return path.is_absolute() and not (
        any(part in INSTALLED for part in path.parts)
        or path.is_relative_to(ours)
        or path.resolve().is_relative_to(ours.resolve())
        or path.is_relative_to(sysconfig.get_path("stdlib"))
    )


def _stamp(file: str) -> Stamp:
    try:
        status = Path(file).stat()
    except OSError:
        return NO_FILE
    return status.st_mtime_ns, status.st_size


USER_MODULES = UserModules()
_CLAIMED_FINDER = _ClaimedFinder()
_CLIENT_FINDER = _ClientFinder()
