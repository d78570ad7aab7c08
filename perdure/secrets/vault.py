"""The secrets that a user has handed in: on the store, encrypted, a folder for each name.

The user's webhooks are among them, in folders below `@webhooks/`: each has secrets, and whoever
lists the secrets knows of them without a further request.

A folder has the versions of its secret, of which the highest counts: each is written once, so that
a re-encryption never undoes what was put meanwhile. Lower ones are deleted. A secret that was
removed leaves a version without a value, so that its name never stands for a secret of the
worker's: to whom that may be lent was decided while it was the user's own.
"""

import asyncio
import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from pydantic import SecretStr, TypeAdapter, ValidationError

from perdure.agent.policies import Variable
from perdure.api.secrets import MAX_DESCRIPTION_CHARS, Secret
from perdure.errors import Invalid, NotFound
from perdure.events.base import Tolerant
from perdure.secrets.masker import MIN_SECRET_BYTES
from perdure.secrets.registry import MAX_SECRET_BYTES
from perdure.storage.credentials.key_ring import (
    KeyRing,
    Undecryptable,
    UnknownKey,
    make_hint,
    parse_keys,
)
from perdure.storage.keys import WEBHOOKS, is_secret_folder, secret_key, user_secrets_prefix
from perdure.storage.store import Store, list_keys

SETTING = "PERDURE_SECRET_KEYS"

MAX_SECRETS = 200
"""Secrets of one user: a worker has them all in memory while it masks."""

PARALLEL_READS = 16

_NAME: TypeAdapter[str] = TypeAdapter(Variable)


class StoredSecret(Tolerant):
    """A version of a secret; `data` is encrypted with the key `key_id`, None where it is removed.

    `data` is in base64; `updated` is UTC.
    """

    description: str = ""
    updated: str
    key_id: str | None = None
    data: str | None = None


DAMAGED = StoredSecret(updated="", data="")
"""What stands for a version that cannot be read."""


class Version(NamedTuple):
    """The place of a version of a secret."""

    name: str
    number: int


@dataclass(frozen=True)
class UserSecret:
    """A secret of a user: its value, None where it has none here, and then the reason."""

    name: str
    description: str
    value: str | None
    fault: str = ""

    def __repr__(self) -> str:
        return f"UserSecret({self.name!r})"


def build_key_ring(setting: SecretStr | None) -> KeyRing | None:
    """Build the key ring of the setting `secret_keys`, None if it is unset. Raises Invalid."""
    return None if setting is None else KeyRing(parse_keys(setting.get_secret_value(), SETTING))


class Vault:
    """The secrets of one user. Without a key ring they can be listed and removed, and not read."""

    def __init__(self, store: Store, user_id: str, ring: KeyRing | None) -> None:
        self._store = store
        self._prefix = user_secrets_prefix(user_id)
        self._user_id = user_id
        self._ring = ring

    async def put(self, name: str, value: str, description: str = "") -> Secret:
        """Keep a secret, in place of one of the same name. Raises Invalid, StoreError."""
        ring = self._require_ring()
        _check(name, value, description)
        if name not in (names := await self.names()) and len(names) >= MAX_SECRETS:
            raise Invalid(f"A user has {MAX_SECRETS} secrets at most.", "Remove one first.")
        sealed = self._seal(ring, name, value, description)
        await self._add_version(name, sealed)
        return Secret(name=name, description=description, updated=sealed.updated)

    async def remove(self, name: str) -> None:
        """Remove a secret. Raises NotFound, StoreError."""
        if name not in await self.names():
            raise NotFound(f"There is no secret {name!r}.", "`perdure secret ls` lists them.")
        await self._add_version(name, StoredSecret(updated=_now()))

    async def list_secrets(self) -> list[Secret]:
        """List the secrets by name, without their values. Raises StoreError."""
        return [
            Secret(name=name, description=stored.description, updated=stored.updated)
            for name, stored in (await self._read_all(_is_secret)).items()
            if stored.data is not None
        ]

    async def names(self) -> set[str]:
        """Return the names of the secrets."""
        return {secret.name for secret in await self.list_secrets()}

    async def load(self) -> list[UserSecret]:
        """Load the secrets by name, removed ones too, and the webhooks. Raises StoreError."""
        return [self._open(name, stored) for name, stored in (await self._read_all()).items()]

    async def reencrypt(self) -> int:
        """Encrypt with the first key what is encrypted with another; return how many secrets.

        Raises Invalid for a secret that cannot be decrypted, and StoreError.
        """
        ring, count = self._require_ring(), 0
        for version, stored in (await self._read_versions()).items():
            if stored.data is None or stored.key_id == ring.first:
                continue
            secret = self._open(version.name, stored)
            if secret.value is None:
                raise Invalid(secret.fault)
            sealed = self._seal(ring, secret.name, secret.value, stored.description)
            again = sealed.model_copy(update={"updated": stored.updated})
            count += await self._write(Version(version.name, version.number + 1), again)
        return count

    def _require_ring(self) -> KeyRing:
        if self._ring is None:
            raise Invalid(
                f"Secrets cannot be kept here: {SETTING} is not set, and they would not be "
                "encrypted.",
                make_hint(SETTING),
            )
        return self._ring

    def _seal(self, ring: KeyRing, name: str, value: str, description: str) -> StoredSecret:
        data = ring.encrypt(value.encode(), self._context(name, ring.first))
        return StoredSecret(
            description=description,
            updated=_now(),
            key_id=ring.first,
            data=base64.b64encode(data).decode(),
        )

    def _open(self, name: str, stored: StoredSecret) -> UserSecret:
        if stored == DAMAGED:
            return self._explain(name, stored, "is damaged on the store: set it again.")
        if stored.data is None:
            return self._explain(name, stored, "was removed by its user: it may be set again.")
        if self._ring is None:
            return self._explain(name, stored, f"cannot be decrypted: {SETTING} is not set here.")
        key_id = stored.key_id or ""
        try:
            data = base64.b64decode(stored.data)
            plain = self._ring.decrypt(key_id, data, self._context(name, key_id))
        except UnknownKey:
            reason = f"is encrypted with the key {key_id!r}: add it behind those of {SETTING}."
        except (Undecryptable, ValueError):
            reason = f"cannot be decrypted with the key {key_id!r} of {SETTING}: set it again."
        else:
            return UserSecret(name, stored.description, plain.decode())
        return self._explain(name, stored, reason)

    def _explain(self, name: str, stored: StoredSecret, reason: str) -> UserSecret:
        sentence = f"The secret {name} of the user {self._user_id} {reason}"
        return UserSecret(name, stored.description, None, sentence)

    def _context(self, name: str, key_id: str) -> bytes:
        """Return what binds a value to its user and its name: none can stand for another."""
        return "\0".join(("perdure/secret", self._user_id, name, key_id)).encode()

    async def _add_version(self, name: str, stored: StoredSecret) -> None:
        """Write the highest version of a secret, whoever else writes one at the same time."""
        while True:
            numbers = [it.number for it in await self._list_versions() if it.name == name]
            if await self._write(Version(name, max(numbers, default=0) + 1), stored):
                return

    async def _write(self, version: Version, stored: StoredSecret) -> bool:
        """Write a version unless it is taken, and delete those before it."""
        key, body = self._key(version), stored.model_dump_json().encode()
        # A store may call its own write taken, where the answer was lost.
        if not await self._store.create(key, body) and await self._store.read(key) != body:
            return False
        for other in await self._list_versions():
            if other.name == version.name and other.number < version.number:
                await self._store.delete(self._key(other))
        return True

    def _key(self, version: Version) -> str:
        return secret_key(self._user_id, version.name, version.number)

    async def _list_versions(self) -> list[Version]:
        """List the places of all versions; objects with other names are none of ours."""
        versions = []
        async for key in list_keys(self._store, self._prefix):
            name, _, rest = key.removeprefix(self._prefix).rpartition("/")
            number = rest.removesuffix(".json")
            if number.isdecimal() and is_secret_folder(name):
                versions.append(Version(name, int(number)))
        return versions

    async def _read_all(
        self, is_wanted: Callable[[str], bool] = lambda _: True
    ) -> dict[str, StoredSecret]:
        found = await self._read_versions(is_wanted)
        return {it.name: stored for it, stored in found.items()}

    async def _read_versions(
        self, is_wanted: Callable[[str], bool] = lambda _: True
    ) -> dict[Version, StoredSecret]:
        """Read the highest version of each wanted name."""
        listed = await self._list_versions()
        highest = _find_highest(it for it in listed if is_wanted(it.name))
        turns = asyncio.Semaphore(PARALLEL_READS)

        async def read(version: Version) -> StoredSecret | None:
            async with turns:
                body = await self._store.read(self._key(version))
            return None if body is None else _parse(body)

        found = await asyncio.gather(*map(read, highest))
        if None in found:  # a higher version has come meanwhile
            return await self._read_versions(is_wanted)
        return {it: stored for it, stored in zip(highest, found, strict=True) if stored}


def is_webhook(name: str) -> bool:
    """Tell whether this is the name of a webhook, and of no secret."""
    return name.startswith(WEBHOOKS)


def _is_secret(name: str) -> bool:
    return not is_webhook(name)


def _find_highest(versions: Iterable[Version]) -> list[Version]:
    """Return the highest version of each name, sorted by name."""
    return sorted({version.name: version for version in sorted(versions)}.values())


def _parse(body: bytes) -> StoredSecret:
    try:
        return StoredSecret.model_validate_json(body)
    except ValidationError:
        return DAMAGED


def check_name(name: str) -> str:
    """Return the name of a secret. Raises Invalid, which does not repeat what may be a value."""
    try:
        return _NAME.validate_python(name)
    except ValidationError:
        raise Invalid(
            "This is no name of a secret.",
            "Use letters, digits and '_', and begin with no digit, such as GITHUB_TOKEN.",
        ) from None


def _check(name: str, value: str, description: str) -> None:
    """Raises Invalid, which repeats nothing of the value."""
    check_name(name)
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        size = 0
    if "\0" in value or not MIN_SECRET_BYTES <= size <= MAX_SECRET_BYTES:
        raise Invalid(
            f"The value of {name} is not a text of {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES:,} "
            "bytes without NULs, which could be masked and given to a command.",
            "Encode other values in base64.",
        )
    if value in description:
        raise Invalid(f"The description of {name} has its value, and everybody may read it.")
    if len(description) > MAX_DESCRIPTION_CHARS or not description.isprintable():
        raise Invalid(
            f"The description of {name} is not one line of {MAX_DESCRIPTION_CHARS} characters at "
            "most."
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
