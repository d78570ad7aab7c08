"""A process that reads through obstore, forks, and lets its child read as well."""

import asyncio
import os
import sys

from perdure.storage.s3 import S3Store
from perdure.storage.store import S3Access


async def read(store: S3Store) -> None:
    await store.replace("a", b"one")
    async with asyncio.timeout(30):
        body = await store.read("a")
    await store.close()
    print(body, "botocore" in sys.modules, flush=True)


def make_store() -> S3Store:
    bucket, endpoint, key, secret = sys.argv[1:]
    return S3Store(bucket, access=S3Access(endpoint, key, secret, "us-east-1"))


if __name__ == "__main__":
    asyncio.run(read(make_store()))
    child = os.fork()
    asyncio.run(read(make_store()))
    if child:
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
