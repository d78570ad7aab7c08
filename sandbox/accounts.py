"""The users and groups that a sandbox knows of."""

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Account:
    """Who commands are."""

    name: str
    uid: int
    gid: int
    home: Path


def accounts_of(user: Account) -> Mapping[str, str]:
    """The system's files of accounts, by their names, with this one in them."""
    line = f"{user.name}:x:{user.uid}:{user.gid}::{user.home}:/bin/bash"
    return {
        "/etc/passwd": _with("/etc/passwd", user.name, user.uid, line),
        "/etc/group": _with("/etc/group", user.name, user.gid, f"{user.name}:x:{user.gid}:"),
    }


def _with(file: str, name: str, number: int, line: str) -> str:
    """The file with this line in place of those that have its name or number."""
    fields = (one.split(":") for one in Path(file).read_text(errors="replace").splitlines())
    others = (one for one in fields if len(one) > 2 and one[0] != name and one[2] != str(number))
    return "\n".join([*map(":".join, others), line, ""])


def in_memory(text: str, over: ExitStack) -> int:
    """A descriptor to read the text from, until that is over."""
    descriptor = os.memfd_create("accounts")
    over.callback(os.close, descriptor)
    os.write(descriptor, text.encode())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
