"""What of the machine every sandbox shows: the system's programs and their data, to be read."""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

PYTHON = Path(sys.executable).resolve()
"""The interpreter itself; its virtual environment is the worker's and not for tools."""

ROOTS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix")
"""Where systems keep programs, libraries and what those need to know."""

MORE = ("/sys/devices/system/cpu",)

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")

_FOLLOWED = ("/etc/resolv.conf", "/etc/localtime", "/etc/hosts")
_NAMED = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def roots() -> Iterator[Path]:
    """Those that this machine has; some of them may be symlinks."""
    return (path for path in map(Path, ROOTS) if path.exists())


def also_read(environment: Mapping[str, str]) -> list[Path]:
    """What lies outside of the roots and is needed: this Python, and what the system links to."""
    named = [Path(environment[name]) for name in _NAMED if environment.get(name)]
    links = [Path(path).resolve() for path in _FOLLOWED]
    found = [Path(sys.base_prefix).resolve(), *links, *named, *map(Path, MORE)]
    return [path for path in found if path.exists() and not _shown(path)]


def _shown(path: Path) -> bool:
    return any(path.is_relative_to(root) for root in ROOTS)


def path_of(environment: Mapping[str, str], reads: list[Path]) -> str:
    """The folders of PATH that a sandbox has, and this Python's at the end."""
    reachable = [*map(Path, ROOTS), *reads]
    own = PYTHON.parent
    given = [*environment.get("PATH", os.defpath).split(os.pathsep), str(own)]
    seen = dict.fromkeys(
        one for one in given if any(Path(one).is_relative_to(root) for root in reachable)
    )
    return os.pathsep.join(seen)
