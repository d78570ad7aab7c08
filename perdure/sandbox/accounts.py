"""The user and group databases that a sandbox shows."""

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Account:
    """The user that commands run as."""

    name: str
    uid: int
    gid: int
    home: Path


def account_files(account: Account) -> Mapping[str, str]:
    """Return the contents of /etc/passwd and /etc/group by path, with `account` added."""
    line = f"{account.name}:x:{account.uid}:{account.gid}::{account.home}:/bin/bash"
    return {
        "/etc/passwd": _replace_line("/etc/passwd", account.name, account.uid, line),
        "/etc/group": _replace_line(
            "/etc/group", account.name, account.gid, f"{account.name}:x:{account.gid}:"
        ),
    }


def _replace_line(file: str, name: str, number: int, line: str) -> str:
    """Return the file's text with `line` in place of every line of that name or number."""
    entries = (entry.split(":") for entry in Path(file).read_text(errors="replace").splitlines())
    other_lines = (
        entry
        for entry in entries
        if len(entry) > 2 and entry[0] != name and entry[2] != str(number)
    )
    return "\n".join([*map(":".join, other_lines), line, ""])


def open_in_memory(text: str, cleanup: ExitStack) -> int:
    """Return a descriptor to read `text` from; `cleanup` closes it."""
    descriptor = os.memfd_create("accounts")
    cleanup.callback(os.close, descriptor)
    os.write(descriptor, text.encode())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
