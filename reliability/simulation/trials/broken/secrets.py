"""Vaults that are wrong in ways that somebody might think of."""

from perdure.secrets.vault import StoredSecret, Vault, Version


class OverwritesVersions(Vault):
    """The second of two writers of a version wins."""

    async def _write(self, version: Version, stored: StoredSecret) -> bool:
        await self._store.replace(self._key(version), stored.model_dump_json().encode())
        return True


class TakesTakenForDone(Vault):
    """A version that another one has written is taken for its own."""

    async def _write(self, version: Version, stored: StoredSecret) -> bool:
        await super()._write(version, stored)
        return True


class UndoesPuts(Vault):
    """A re-encryption is written behind what was put meanwhile."""

    async def reencrypt(self) -> int:
        stored = await self._read_versions()
        for version, it in stored.items():
            if it.data is not None:
                secret = self._open(version.name, it)
                await self._add_version(
                    version.name,
                    self._seal(self._require_ring(), secret.name, secret.value or "", ""),
                )
        return len(stored)


class DeletesFirst(Vault):
    """The versions before are deleted before there is another one."""

    async def _write(self, version: Version, stored: StoredSecret) -> bool:
        for other in await self._list_versions():
            if other.name == version.name and other.number < version.number:
                await self._store.delete(self._key(other))
        return await super()._write(version, stored)
