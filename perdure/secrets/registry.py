"""The secrets of a worker, read from a folder or from its environment."""

import logging
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from perdure.secrets.masker import MIN_SECRET_BYTES, Masker, Patterns, mask_bytes

logger = logging.getLogger(__name__)

ENVIRONMENT_PREFIX = "PERDURE_SECRET_"
"""Prefix of a secret's name in the worker's environment."""

KEY_RING = "KEYS"
"""What stands behind that prefix in PERDURE_SECRET_KEYS, which is no secret to be lent."""

MAX_SECRET_BYTES = 64 * 1024
"""Size limit of a value; an environment variable holds at most twice as much."""

LEAST_CUT = 4
"""Bytes of the beginning of a value that are cut from the end of a text that grows."""

REREAD_INTERVAL = 1.0
"""Seconds between two reads of the values for masking."""

_CREDENTIAL = re.compile(
    r"(?:^|_)(?:API_?KEY|KEYS?|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PAT)$", re.IGNORECASE
)


class SecretUnavailable(Exception):
    """A secret cannot be given to a command; the text says why and what to do."""


class Secrets:
    """The secrets of this worker. No value is ever in a `repr`.

    `folder` has a file for each secret, named as the secret (as Docker and Kubernetes mount them; a
    newline at its end is ignored). Other secrets are read from the environment, as
    PERDURE_SECRET_{NAME}. Values are read when they are needed, so that new ones count at once;
    old ones stay masked. The worker's own keys and passwords are masked too, and lent to nobody.
    """

    def __init__(
        self, folder: Path | None = None, environment: Mapping[str, str] = os.environ
    ) -> None:
        self.folder = folder
        self._environment = environment
        self._names: dict[str, str] = {}
        self._patterns = Patterns({})
        self._read_at = -REREAD_INTERVAL
        self._warned: set[str] = set()

    def value(self, name: str) -> str:
        """Read the current value of a secret. Raises SecretUnavailable."""
        try:
            value = self._read(name)
        except SecretUnavailable as error:
            self._warn(str(error))
            raise
        self._learn({value: name})
        return value

    def lend(self, names: Iterable[str]) -> "LentSecrets":
        return LentSecrets(self, tuple(names))

    def mask(self, text: str) -> str:
        """Replace each value in the text by `<secret:NAME>`."""
        if not self.has_values():
            return text
        raw = text.encode(errors="surrogatepass")
        masked_text = self.mask_bytes(raw)
        return text if masked_text is raw else masked_text.decode(errors="surrogatepass")

    def mask_partial(self, text: str) -> str:
        """Mask a text that grows, and cut an end that may be the beginning of a value.

        A few characters are shown: they tell nothing, and most texts that have come to their end,
        such as a prompt for input, end like the beginning of some value.
        """
        masker = self.masker()
        shown = masker.feed(text.encode(errors="surrogatepass"))
        end = masker.flush()
        return (shown + end if len(end) < LEAST_CUT else shown).decode(errors="ignore")

    def mask_bytes(self, data: bytes) -> bytes:
        return mask_bytes(data, self.patterns())

    def has_values(self) -> bool:
        """Tell whether there is any value to mask by now."""
        self.patterns()
        return bool(self._names)

    def known_values(self) -> dict[str, str]:
        """Return the name of each value that is masked."""
        return dict(self._names)

    def names_in(self, data: bytes) -> set[str]:
        """Return the names of the secrets whose values are in the data, in any form."""
        return {name for _, _, name in self.patterns().spans(data)}

    def masker(self) -> Masker:
        return Masker(self.patterns)

    def patterns(self) -> Patterns:
        """Return the patterns of all values, former ones included."""
        now = time.monotonic()
        if now - self._read_at >= REREAD_INTERVAL:
            self._read_at = now
            self._learn(dict(self._read_all()))
        return self._patterns

    def _learn(self, values: Mapping[str, str]) -> None:
        if new := {value: name for value, name in values.items() if value not in self._names}:
            self._names |= new
            self._patterns = Patterns(self._names)

    def _read_all(self) -> Iterator[tuple[str, str]]:
        for name in self._list_names():
            try:
                yield self._read(name), name
            except SecretUnavailable as error:
                self._warn(str(error))
        for name, value in self._environment.items():
            if _is_credential(name, value):
                yield value, name

    def _list_names(self) -> set[str]:
        prefix = ENVIRONMENT_PREFIX
        names = {name.removeprefix(prefix) for name in self._environment if name.startswith(prefix)}
        names.discard(KEY_RING)
        if self.folder is not None:
            try:
                files = (file for file in self.folder.iterdir() if file.is_file())
                names |= {file.name for file in files if not file.name.startswith(".")}
            except OSError as error:
                self._warn(f"The folder PERDURE_SECRETS cannot be read: {error}.")
        return names

    def _read(self, name: str) -> str:
        variable = f"{ENVIRONMENT_PREFIX}{name}"
        value = None if name == KEY_RING else self._environment.get(variable)
        raw = None if value is None else os.fsencode(value)
        try:
            if self.folder is not None:
                raw = (self.folder / name).read_bytes().rstrip(b"\r\n")
        except FileNotFoundError:
            pass  # the environment may have it
        except OSError as error:
            raise SecretUnavailable(
                f"The secret {name} cannot be read ({error.strerror}): its operator mends that."
            ) from None
        if raw is None:
            raise SecretUnavailable(
                f"The secret {name} has no value on this worker: its operator sets one, as a file "
                f"{name} in the folder PERDURE_SECRETS or as {ENVIRONMENT_PREFIX}{name}."
            )
        return _check_value(name, raw)

    def _warn(self, warning: str) -> None:
        if warning not in self._warned:
            self._warned.add(warning)
            logger.warning("%s", warning)


@dataclass(frozen=True)
class LentSecrets:
    """The secrets that an agent may use, by name."""

    secrets: Secrets
    names: tuple[str, ...] = ()

    def values_named_in(self, command: str) -> dict[str, str]:
        """Return the secrets whose names are words of the command. Raises SecretUnavailable."""
        return {
            name: self.secrets.value(name)
            for name in self.names
            if re.search(rf"(?<![A-Za-z0-9_]){name}(?![A-Za-z0-9_])", command)
        }

    def resolve_input(self, text: str) -> str:
        """Resolve an input that is just `$NAME`, return any other. Raises SecretUnavailable."""
        match = re.fullmatch(r"\$(?:(\w+)|\{(\w+)\})\n?", text)
        name = match and (match[1] or match[2])
        return self.secrets.value(name) if name in self.names else text

    def masker(self) -> Masker:
        """Return a masker for a stream; it masks all secrets, lent or not."""
        return self.secrets.masker()


def _check_value(name: str, raw: bytes) -> str:
    if not MIN_SECRET_BYTES <= len(raw) <= MAX_SECRET_BYTES:
        raise SecretUnavailable(
            f"The secret {name} has a value of {len(raw):,} bytes, and {MIN_SECRET_BYTES} to "
            f"{MAX_SECRET_BYTES:,} can be kept secret: its operator sets another."
        )
    value = raw.decode(errors="replace")
    if "\0" in value or value.encode() != raw:
        raise SecretUnavailable(
            f"The secret {name} is no text in UTF-8 without NULs, as an environment takes: its "
            "operator stores it in base64."
        )
    return value


def _is_credential(name: str, value: str) -> bool:
    """Tell whether a variable of the worker is a key or a password, not the path of one."""
    is_lent = name.startswith(ENVIRONMENT_PREFIX) and name != f"{ENVIRONMENT_PREFIX}{KEY_RING}"
    if is_lent or not _CREDENTIAL.search(name):
        return False
    try:
        _check_value(name, os.fsencode(value))
    except SecretUnavailable:
        return False
    return not (value.startswith("/") and Path(value).exists())


NO_LENT_SECRETS = LentSecrets(Secrets())
"""The secrets of an agent that has none."""
