"""The risks of reading, writing and deleting a path, by its text alone: no link is followed."""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from perdure.tools.risk.finding import HOLES, UNKNOWN, Finding, drop_holes, high, legible, medium

MAX_PATH_CHARACTERS = 4096

_STREAM = re.compile(r"/dev/(null|zero|full|u?random|tty|std(in|out|err)|fd/.*)|/proc/self/fd/.*")
_TEMPORARY = re.compile(r"/(var/)?tmp(/.+)?|/dev/shm/.+|/private/tmp/.+|/var/folders/.+")
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
    r"/\.env(\.(?!(example|sample|template|dist)$)[^/]+)?$|/\.(npmrc|pypirc)$"
    r"|/credentials(\.json)?$|\.(pem|key|p12|pfx|kdbx|jks|keystore)$"
)
_RUN_LATER = re.compile(
    r"/\.git/(hooks(/|$)|config$)"
    r"|/\.(bash|zsh)(rc|_profile|_login|_logout|env)$|/\.(profile|zprofile|zshenv|envrc)$"
)


@dataclass(frozen=True)
class Paths:
    """Paths as seen from `cwd`, an absolute path or UNKNOWN."""

    workspace: str
    cwd: str

    def resolve(self, name: str) -> str:
        """Return an absolute path without `..`; one that is not known begins with a mark."""
        if name.startswith(HOLES):
            return name
        unknown_base = self.cwd.startswith(HOLES) and not name.startswith("/")
        if unknown_base or len(name) > MAX_PATH_CHARACTERS:
            return UNKNOWN
        return "/" + posixpath.normpath(posixpath.join(self.cwd, name)).lstrip("/")

    def kind(self, path: str) -> str:
        """Name the region of the file system that a resolved path lies in."""
        root = self.workspace.rstrip("/") + "/"
        if path.startswith(HOLES):
            return "unknown"
        if _STREAM.fullmatch(path):
            return "stream"
        if path == self.workspace or re.fullmatch(r"[.?*\[\]!^]*\*[.?*\[\]!^]*", path[len(root) :]):
            return "workspace" if f"{path}/".startswith(root) else "outside"
        if path.startswith(root):
            return "inside"
        if path.startswith(("/dev/tcp/", "/dev/udp/")):
            return "network"
        if _TEMPORARY.fullmatch(path) and not root.startswith(f"{path}/"):
            return "temporary"
        return "device" if path.startswith("/dev/") else "outside"

    def is_secret(self, name: str) -> bool:
        """Say whether credentials lie there."""
        path = self.resolve(name)
        return bool(_SECRET.search(path)) and not _PUBLIC.search(path)

    def read(self, name: str) -> Iterator[Finding]:
        path, text = self.resolve(name), legible(self.resolve(name))
        if self.is_secret(name):
            yield high(f"It reads credentials: {text}.")
        elif _PRIVATE.search(path):
            yield medium(f"It reads a file that may hold credentials: {text}.")
        elif self.kind(path) == "network":
            yield high(f"It opens a network connection through the shell: {text}.")
        elif self.kind(path) == "device":
            yield medium(f"It reads a device: {text}.")

    def write(self, name: str) -> Iterator[Finding]:
        path, text = self.resolve(name), legible(self.resolve(name))
        match self.kind(path):
            case "outside":
                yield high(f"It writes outside the workspace: {text}.")
            case "device":
                yield high(f"It writes to a device: {text}.")
            case "network":
                yield high(f"It opens a network connection through the shell: {text}.")
            case "unknown":
                yield medium(f"It writes where only the run will tell: {legible(name)}.")
            case "inside" | "temporary" if _RUN_LATER.search(path):
                yield high(f"It changes a file that others run or obey later: {text}.")
            case "inside" | "temporary" if _SECRET.search(path):
                yield high(f"It changes credentials: {text}.")
            case "inside" | "temporary" if _PRIVATE.search(path):
                yield medium(f"It changes a file that may hold credentials: {text}.")

    def delete(self, name: str, *, recursive: bool) -> Iterator[Finding]:
        # An unset variable is empty: `"$DIRECTORY/"` is then `/`.
        if name.startswith(HOLES) and drop_holes(name).startswith("/"):
            yield high(f"It deletes {legible(name)}: everything, if the variable is not set.")
            return
        path = self.resolve(name)
        match self.kind(path), recursive:
            case (("outside" | "device"), _):
                below = " and all below it" if recursive else ""
                yield high(f"It deletes outside the workspace: {legible(path)}{below}.")
            case "unknown", True:
                yield high("It deletes a directory that only the run will tell.")
            case "unknown", False:
                yield medium("It deletes a file that only the run will tell.")
            case "workspace", True:
                yield high("It deletes everything in the workspace.")
            case "workspace", False:
                yield medium("It removes every file of the workspace from its place.")
            case "inside", _ if re.search(r"/\.git(/|$)", path):
                yield high("It deletes the history of a repository.")
            case (("inside" | "temporary"), True):
                yield medium(f"It deletes {legible(path)} and all below it.")
