"""The secrets of a user: two writers, a rotation of the key, and readers."""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from perdure.errors import NotFound
from perdure.secrets.vault import UserSecret, Vault
from perdure.storage.credentials.key_ring import KeyRing
from perdure.storage.keys import user_secrets_prefix
from reliability.simulation.conversation import USER
from reliability.simulation.laws import require
from reliability.simulation.store import Access
from reliability.simulation.trials.trial import Trial

NAMES = ("TOKEN", "PASSWORD")
OLD = KeyRing({"old": b"o" * 32, "new": b"n" * 32})
NEW = KeyRing({"new": b"n" * 32, "old": b"o" * 32})
PREFIX = user_secrets_prefix(USER)
ENDLESS = float("inf")


@dataclass
class Change:
    """A put or, without a value, a removal: when it began, when it was acknowledged."""

    name: str
    value: str | None
    begun: float
    ended: float = ENDLESS
    attempts: int = 0


@dataclass
class Reading:
    """The value that a reader got, and when the reading began."""

    begun: float
    values: dict[str, str | None] = field(default_factory=dict)


class SecretTrial(Trial[Vault]):
    """Some processes encrypt with the old key and some with the new one; all can read both."""

    kind = "secrets"
    part = Vault

    def make_resources(self, store: Access) -> Vault:
        vault: Vault = self.part(store, USER, self.loop.random.choice((OLD, NEW)))
        return vault

    async def act(self) -> None:
        self.changes: list[Change] = []
        self.readings: list[Reading] = []
        self.values = count()
        dice = self.loop.random
        await asyncio.gather(
            *(self._write(dice.choice((1, 2, 3))) for _ in range(2)),
            *(self._reencrypt() for _ in range(dice.choice((1, 1, 2)))),
            *(self._read(dice.choice((1, 2))) for _ in range(dice.choice((0, 1)))),
        )

    async def _write(self, times: int) -> None:
        for _ in range(times):
            await asyncio.sleep(self.loop.delay() * 6)
            removes = self.loop.chance(0.2)
            value = None if removes else f"a secret value {next(self.values)}"
            change = Change(self.loop.random.choice(NAMES), value, self.loop.now)
            self.changes.append(change)
            await self._do("remove" if removes else "put", partial(make, change=change))
            change.ended = self.loop.now

    async def _reencrypt(self) -> None:
        await asyncio.sleep(self.loop.delay() * 10)
        await self._do("reencrypt", lambda vault: vault.reencrypt())

    async def _read(self, times: int) -> None:
        for _ in range(times):
            await asyncio.sleep(self.loop.delay() * 10)
            reading = Reading(self.loop.now)
            found = await self._do("read", lambda vault: vault.load())
            reading.values = {secret.name: secret.value for secret in found}
            self.readings.append(reading)

    async def _do(self, name: str, step: Callable[[Vault], Awaitable[object]]) -> list[UserSecret]:
        done = await self.crew.complete(name, step)
        return done if isinstance(done, list) else []

    async def settle(self) -> None:
        vault: Vault = self.part(Access(self.bucket, 0.0), USER, NEW)
        await vault.reencrypt()
        self.last = Reading(self.loop.now)
        self.last.values = {secret.name: secret.value for secret in await vault.load()}

    def check(self) -> None:
        changed = [key for key in self.bucket.overwritten if "/secrets/" in key]
        require(not changed, f"versions were overwritten: {changed}")
        for reading in (*self.readings, self.last):
            for name in NAMES:
                self.check_value(reading, name)
        self.check_written()
        self.check_stored()

    def check_written(self) -> None:
        """Every put that was acknowledged has been a version of its secret."""
        written = {
            open_value(key.removeprefix(PREFIX).partition("/")[0], body)
            for key, bodies in self.bucket.history.items()
            for body in bodies
            if body is not None and key.startswith(PREFIX)
        }
        lost = [it.value for it in self.changes if it.ended < ENDLESS and it.value not in written]
        require(not any(lost), f"acknowledged, and never written: {lost}")

    def check_value(self, reading: Reading, name: str) -> None:
        """A reader gets a value that no other one had followed before he began.

        A change that was attempted twice may take place twice, and the second time later.
        """
        value = reading.values.get(name)
        changes = [it for it in self.changes if it.name == name and it.ended < reading.begun]
        made = [it for it in self.changes if it.name == name and it.value == value]
        require(bool(made) or value is None, f"{name} has a value that nobody put: {value}")
        if made and any(it.attempts > 1 for it in made):
            return
        followed = changes and not any(
            all(it.ended >= other.begun for other in changes) for it in made
        )
        require(not followed, f"{name} is {value}, which was replaced, or was never removed")

    def check_stored(self) -> None:
        """The highest version of each secret has the value that is read, under the new key."""
        highest: dict[str, bytes] = {}
        for key, body in self.bucket.under(PREFIX):
            highest[key.partition("/")[0]] = body
        require(set(self.last.values) == set(highest), "a secret is read that is not there")
        for name, body in highest.items():
            stored = json.loads(body)
            is_new = stored["data"] is None or stored["key_id"] == "new"
            require(is_new, f"{name} is still under the old key")
            value = open_value(name, body)
            require(value == self.last.values[name], f"{name} is stored otherwise than it is read")


def open_value(name: str, body: bytes) -> str | None:
    """Decrypt a stored version; None for a removal."""
    stored = json.loads(body)
    if stored["data"] is None:
        return None
    context = "\0".join(("perdure/secret", USER, name, stored["key_id"])).encode()
    return NEW.decrypt(stored["key_id"], base64.b64decode(stored["data"]), context).decode()


async def make(vault: Vault, change: Change) -> None:
    change.attempts += 1
    if change.value is not None:
        await vault.put(change.name, change.value)
        return
    try:
        await vault.remove(change.name)
    except NotFound:
        change.attempts += 1  # it changed nothing, or an earlier attempt did
