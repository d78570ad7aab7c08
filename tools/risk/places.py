"""Where a path leads, by arithmetic on its text alone: no file is looked at, no link followed."""

import fnmatch
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tools.risk.finding import Finding, high, medium
from tools.risk.marks import HOLES, HOME, UNKNOWN, shown, without_holes

Kind: TypeAlias = Literal[
    "stream", "inside", "whole", "temporary", "device", "network", "outside", "unknown"
]

LONGEST = 4096
"""Characters of a path; a longer one is no path to any system."""

_STREAM = re.compile(
    r"/dev/(null|zero|full|random|urandom|tty|std(in|out|err)|fd/.*)|/proc/self/fd/.*"
)
_TEMPORARY = re.compile(r"/(var/)?tmp(/.+)?|/dev/shm/.+|/private/tmp/.+|/var/folders/.+")
_GLOB = re.compile(r"[*?\[]")
_ANY_NAME = re.compile(r"[.?*\[\]!^]*")

_SECRET = re.compile(
    r"/\.(ssh|aws|gnupg|azure|password-store|docker/config\.json|kube/config)(/|$)"
    r"|/\.(netrc|git-credentials|pgpass|my\.cnf|vault-token|[a-z]*_history)$"
    r"|/\.config/(gcloud|gh|hub|op)(/|$)"
    r"|/id_(rsa|dsa|ecdsa|ed25519)(_sk)?$"
    r"|^/etc/(g?shadow|sudoers|ssl/private|krb5\.keytab)-?(\.d)?(/|$)"
    r"|^/proc/[^/]+/(environ|mem)$"
    r"|^(/var)?/run/secrets(/|$)"
)
_PUBLIC = re.compile(r"(\.pub|/known_hosts|/\.ssh/config)$")
_PRIVATE = re.compile(
    r"/\.env(\.[^/]+)?$|/\.(npmrc|pypirc)$|/credentials(\.json)?$"
    r"|\.(pem|key|p12|pfx|kdbx|jks|keystore)$"
)
_SAMPLE = re.compile(r"\.(example|sample|template|dist)$")
_EXAMPLES = (
    *(f"{HOME}/{name}" for name in (".ssh/id_rsa", ".ssh/id_ed25519", ".aws/credentials")),
    *(f"{HOME}/{name}" for name in (".netrc", ".git-credentials", ".bash_history")),
    *("/etc/shadow", "/etc/sudoers"),
)
_RUN_LATER = re.compile(
    r"/\.git/(hooks(/|$)|config$)"
    r"|/\.(bash|zsh)(rc|_profile|_login|_logout|env)$|/\.(profile|zprofile|zshenv|envrc)$"
)


@dataclass(frozen=True)
class Places:
    """`cwd` has more than one path where it cannot be told which one it is."""

    workspace: str
    cwd: tuple[str, ...]

    def resolved(self, name: str) -> tuple[str, ...]:
        """Absolute paths without `..`; one that is not known begins with a hole."""
        if name.startswith(HOLES) or len(name) > LONGEST:
            return (name if name.startswith(HOLES) else UNKNOWN,)
        return tuple(dict.fromkeys(_normal(cwd, name) for cwd in self.cwd))

    def kind(self, path: str) -> Kind:
        """What a resolved path is."""
        if path.startswith(HOLES):
            return "unknown"
        if _STREAM.fullmatch(path):
            return "stream"
        if path == self.workspace:
            return "whole"
        if path.startswith(self.workspace.rstrip("/") + "/"):
            return "whole" if _is_everything_in(self.workspace, path) else "inside"
        if path.startswith(("/dev/tcp/", "/dev/udp/")):
            return "network"
        if _TEMPORARY.fullmatch(path) and not self.workspace.startswith(f"{path}/"):
            return "temporary"
        return "device" if path.startswith("/dev/") else "outside"


def _normal(cwd: str, name: str) -> str:
    if cwd.startswith(HOLES) and not name.startswith("/"):
        return UNKNOWN
    if len(cwd) > LONGEST:
        return UNKNOWN
    return "/" + posixpath.normpath(posixpath.join(cwd, name)).lstrip("/")


def _is_everything_in(workspace: str, path: str) -> bool:
    parent, _, last = path.rpartition("/")
    return parent == workspace and "*" in last and bool(_ANY_NAME.fullmatch(last))


def writing(places: Places, name: str) -> Iterator[Finding]:
    """Creating or changing the file `name`."""
    for path in places.resolved(name):
        match places.kind(path):
            case "outside":
                yield high(f"It writes outside the workspace: {shown(path)}.")
            case "device":
                yield high(f"It writes to a device: {shown(path)}.")
            case "network":
                yield high(f"It opens a network connection through the shell: {shown(path)}.")
            case "unknown":
                yield medium(f"It writes where only the run will tell: {shown(name)}.")
            case "inside" | "temporary":
                yield from _planted(path)
            case _:
                pass


def _planted(path: str) -> Iterator[Finding]:
    if _RUN_LATER.search(path):
        yield high(f"It changes a file that others run or obey later: {shown(path)}.")
    elif _SECRET.search(path):
        yield high(f"It changes credentials: {shown(path)}.")
    elif _PRIVATE.search(path) and not _SAMPLE.search(path):
        yield medium(f"It changes a file that may hold credentials: {shown(path)}.")


def reading(places: Places, name: str) -> Iterator[Finding]:
    """Looking into the file `name`."""
    for path in places.resolved(name):
        if is_secret(path):
            yield high(f"It reads credentials: {shown(path)}.")
        elif _PRIVATE.search(path) and not _SAMPLE.search(path):
            yield medium(f"It reads a file that may hold credentials: {shown(path)}.")
        elif places.kind(path) == "network":
            yield high(f"It opens a network connection through the shell: {shown(path)}.")
        elif places.kind(path) == "device":
            yield medium(f"It reads a device: {shown(path)}.")


def is_secret(path: str) -> bool:
    """Whether credentials are kept there, or may be among what a pattern matches."""
    if _GLOB.search(path) and any(fnmatch.fnmatchcase(name, path) for name in _EXAMPLES):
        return True
    return bool(_SECRET.search(path)) and not _PUBLIC.search(path)


def deleting(places: Places, name: str, *, recursive: bool) -> Iterator[Finding]:
    """Removing `name`, and all below it where `recursive`."""
    # What is not set is nothing: `"$DIRECTORY/"` is then `/`.
    if without_holes(name).startswith("/") and name.startswith(HOLES):
        yield high(f"It deletes {shown(name)}: everything, if the variable is not set.")
        return
    for path in places.resolved(name):
        yield from _deleting(places.kind(path), path, recursive=recursive)


def _deleting(kind: Kind, path: str, *, recursive: bool) -> Iterator[Finding]:
    everything = " and all below it" if recursive else ""
    if kind in ("outside", "device"):
        yield high(f"It deletes outside the workspace: {shown(path)}{everything}.")
    elif kind == "unknown" and recursive:
        yield high("It deletes a directory that only the run will tell.")
    elif kind == "unknown":
        yield medium("It deletes a file that only the run will tell.")
    elif kind == "whole" and recursive:
        yield high("It deletes everything in the workspace.")
    elif kind == "whole":
        yield medium("It removes every file of the workspace from its place.")
    elif kind == "inside" and re.search(r"/\.git(/|$)", path):
        yield high("It deletes the history of a repository.")
    elif kind in ("inside", "temporary") and recursive:
        yield medium(f"It deletes {shown(path)} and all below it.")


def left(places: Places) -> Iterator[Finding]:
    """Staying where the paths of later commands mean other files than they seem to."""
    for path in places.cwd:
        if places.kind(path) in ("outside", "unknown"):
            yield medium(f"It leaves the terminal outside the workspace: {shown(path)}.")
