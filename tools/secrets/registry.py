"""The secrets of a worker: names with values, from a folder or from its environment."""

import logging
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.secrets.masker import Masker, masked
from tools.secrets.patterns import SHORTEST, Patterns

logger = logging.getLogger(__name__)

PREFIX = "PERDURE_SECRET_"
"""Before a secret's name in the worker's environment."""

LONGEST = 64 * 1024
"""Bytes of a value; a variable of a process holds no more than twice as much."""

REREAD = 1.0
"""Seconds for which values are taken to be as they were."""

_CREDENTIAL = re.compile(
    r"(?:^|_)(?:API_?KEY|KEYS?|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PAT)$", re.IGNORECASE
)


class NoValue(Exception):
    """A secret cannot be given to a command; the sentence says why and what to do."""


class Secrets:
    """What is known to be secret here. Nothing of it is ever in a `repr`.

    `folder` has a file for each, called as the secret is (as Docker and Kubernetes mount them; a
    newline at the end does not count); what is not there is looked for in the environment, as
    PERDURE_SECRET_{NAME}. They are read when they are needed, so that new values count at once;
    old ones stay masked. So are the worker's own keys and passwords, which nobody is given.
    """

    def __init__(
        self, folder: Path | None = None, environment: Mapping[str, str] = os.environ
    ) -> None:
        self.folder = folder
        self._environment = environment
        self._names: dict[str, str] = {}
        self._patterns = Patterns({})
        self._read_at = -REREAD
        self._told: set[str] = set()

    def value(self, name: str) -> str:
        """The value of the secret, now. Raises NoValue."""
        try:
            value = self._read(name)
        except NoValue as error:
            self._warn(str(error))
            raise
        self._learn({value: name})
        return value

    def lent(self, names: Iterable[str]) -> "Lent":
        """Those among the secrets that an agent may use."""
        return Lent(self, tuple(names))

    def mask(self, text: str) -> str:
        """The text with `<secret:NAME>` in the place of each value."""
        raw = text.encode(errors="surrogatepass")
        found = self.mask_bytes(raw)
        return text if found is raw else found.decode(errors="surrogatepass")

    def mask_beginning(self, text: str) -> str:
        """As `mask`, for a text that grows: without what may be the beginning of a value."""
        raw = text.encode(errors="surrogatepass")
        return self.masker().feed(raw).decode(errors="ignore")

    def mask_bytes(self, data: bytes) -> bytes:
        """As `mask`, whatever else is in the data."""
        return masked(data, self.patterns())

    def holds(self, data: bytes) -> set[str]:
        """The names of the secrets whose values are in the data, in whatever form."""
        return {name for _, _, name in self.patterns().spans(data)}

    def masker(self) -> Masker:
        """For a text that comes bit by bit."""
        return Masker(self.patterns)

    def patterns(self) -> Patterns:
        """For all values that are known, or were."""
        now = time.monotonic()
        if now - self._read_at >= REREAD:
            self._read_at = now
            self._learn(dict(self._all()))
        return self._patterns

    def _learn(self, values: Mapping[str, str]) -> None:
        if values.keys() - self._names.keys():
            self._names |= {one: name for one, name in values.items() if one not in self._names}
            self._patterns = Patterns(self._names)

    def _all(self) -> Iterator[tuple[str, str]]:
        for name in self._listed():
            try:
                yield self._read(name), name
            except NoValue as error:
                self._warn(str(error))
        for name, value in self._environment.items():
            if _is_credential(name, value):
                yield value, name

    def _listed(self) -> set[str]:
        given = (name for name in self._environment if name.startswith(PREFIX))
        names = {name.removeprefix(PREFIX) for name in given}
        if self.folder is not None:
            try:
                files = (one for one in self.folder.iterdir() if one.is_file())
                names |= {one.name for one in files if not one.name.startswith(".")}
            except OSError as error:
                self._warn(f"The folder PERDURE_SECRETS cannot be read: {error}.")
        return names

    def _read(self, name: str) -> str:
        raw = self._in_folder(name)
        if raw is None and (value := self._environment.get(f"{PREFIX}{name}")) is not None:
            raw = os.fsencode(value)
        if raw is None:
            raise NoValue(
                f"The secret {name} has no value on this worker: its operator sets one, as a file "
                f"{name} in the folder PERDURE_SECRETS or as {PREFIX}{name}."
            )
        return _checked(name, raw)

    def _in_folder(self, name: str) -> bytes | None:
        if self.folder is None:
            return None
        try:
            return (self.folder / name).read_bytes().rstrip(b"\r\n")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise NoValue(
                f"The secret {name} cannot be read ({error.strerror}): its operator mends that."
            ) from None

    def _warn(self, what: str) -> None:
        if what not in self._told:
            self._told.add(what)
            logger.warning("%s", what)


@dataclass(frozen=True)
class Lent:
    """The secrets that an agent may use, by name."""

    secrets: Secrets
    names: tuple[str, ...] = ()

    def named_in(self, command: str) -> dict[str, str]:
        """The values of the secrets whose names are words of the command. Raises NoValue."""
        return {
            name: self.secrets.value(name)
            for name in self.names
            if re.search(rf"(?<![A-Za-z0-9_]){name}(?![A-Za-z0-9_])", command)
        }

    def typed(self, text: str) -> str:
        """What is typed for an input: a value where the input is `$NAME` and nothing else.

        Raises NoValue.
        """
        found = re.fullmatch(r"\$(?:(\w+)|\{(\w+)\})\n?", text)
        name = found and (found[1] or found[2])
        return self.secrets.value(name) if name in self.names else text

    def masker(self) -> Masker:
        """For a text that comes bit by bit: of all secrets, also those that are not lent."""
        return self.secrets.masker()


def _checked(name: str, raw: bytes) -> str:
    if not SHORTEST <= len(raw) <= LONGEST:
        raise NoValue(
            f"The secret {name} has a value of {len(raw):,} bytes, and {SHORTEST} to {LONGEST:,} "
            "can be kept secret: its operator sets another."
        )
    try:
        value = raw.decode()
    except ValueError:
        value = "\0"
    if "\0" in value:
        raise NoValue(
            f"The secret {name} is no text in UTF-8 without NULs, as an environment takes: its "
            "operator stores it in base64."
        )
    return value


def _is_credential(name: str, value: str) -> bool:
    """Whether a variable of the worker's own is a key or a password, and not where one is."""
    if name.startswith(PREFIX) or not _CREDENTIAL.search(name):
        return False
    try:
        _checked(name, os.fsencode(value))
    except NoValue:
        return False
    return not (value.startswith("/") and Path(value).exists())


NOTHING = Lent(Secrets())
"""For an agent that has no secrets."""
