"""A store in a dict, held to the same contract as the others.

Its calls never yield to another task, so that a test decides the schedule.
"""

import hashlib

from perdure.storage.store import Version, check_key


class MemoryStore:
    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    async def create(self, key: str, body: bytes) -> bool:
        check_key(key)
        if key in self.objects:
            return False
        self.objects[key] = body
        return True

    async def read(self, key: str) -> bytes | None:
        check_key(key)
        return self.objects.get(key)

    async def replace(self, key: str, body: bytes) -> None:
        check_key(key)
        self.objects[key] = body

    async def read_version(self, key: str) -> Version | None:
        body = await self.read(key)
        return None if body is None else Version(body, hashlib.sha256(body).hexdigest())

    async def replace_version(self, key: str, body: bytes, tag: str) -> bool:
        check_key(key)
        found = self.objects.get(key)
        if found is None or hashlib.sha256(found).hexdigest() != tag:
            return False
        self.objects[key] = body
        return True

    async def delete(self, key: str) -> None:
        check_key(key)
        self.objects.pop(key, None)

    async def folders(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        inner = (key.removeprefix(prefix) for key in self.objects if key.startswith(prefix))
        names = {name.partition("/")[0] + "/" for name in inner if "/" in name}
        start = f"{after}/" if after else ""
        return [name[:-1] for name in sorted(names) if name > start][:limit]

    async def close(self) -> None:
        self.objects = {}

    async def list(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        return sorted(key for key in self.objects if key.startswith(prefix) and key > after)[:limit]
