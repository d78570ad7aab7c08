"""A store in a bucket of any S3 server that honours `If-None-Match` on writes."""

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from perdure.storage import obstore_client
from perdure.storage.errors import StoreError, StoreUnavailable
from perdure.storage.store import KEYS_PER_PAGE, S3Access, Version, check_key

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

    from perdure.storage.botocore_client import BotocoreClient

T = TypeVar("T")
Listing: TypeAlias = list[dict[str, Any]]

logger = logging.getLogger(__name__)

THREADS = 4  # botocore holds the interpreter's lock: more threads only wait for it
MAX_REQUESTS = 64  # at once, through obstore
FIRST_BACKOFF = 0.05
MAX_BACKOFF = 2.0

MAX_FAILURES = 16
"""Failures of obstore in a row, where botocore succeeds at once, after which it is left alone."""

REST_SECONDS = 60.0
"""Time for which it is; a proxy, a certificate or a region that it lacks takes longer to mend."""


class S3Store:
    """A `Store` in one bucket, its keys under `prefix`.

    A request goes through obstore. If its answer is not plain, botocore repeats it, the same key
    and the same bytes, and that answer counts. A request whose outcome is unknown (no answer, 409,
    429, 5xx) is repeated for about `retry_seconds`; then StoreUnavailable is raised.
    """

    def __init__(
        self,
        bucket: str,
        prefix: str = "",
        access: S3Access | None = None,
        retry_seconds: float = 15.0,
    ) -> None:
        self.bucket = bucket
        self.prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self.access = access or S3Access()
        self.retry_seconds = retry_seconds
        self.on_retry: Callable[[str], None] | None = None
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="s3")
        self._permits: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None
        self._connecting = Lock()
        self._client: obstore_client.Client | None = None
        self._failures = 0
        self._rest_until = 0.0

    async def create(self, key: str, body: bytes) -> bool:
        place = self._place(key)

        def put(s3: "S3Client") -> object:
            return s3.put_object(Bucket=self.bucket, Key=place, Body=body, IfNoneMatch="*")

        async def repeat() -> bool:
            return await self._retry(put, refusal=412) is not None

        fast = partial(obstore_client.create, key=place, body=body)
        return await self._settle(fast, repeat, len(body))

    async def read(self, key: str) -> bytes | None:
        place = self._place(key)

        def get(s3: "S3Client") -> bytes:
            # Not `with body`, which yields the stream without the checksum's check.
            with contextlib.closing(s3.get_object(Bucket=self.bucket, Key=place)["Body"]) as body:
                return body.read()

        fast = partial(obstore_client.read, key=place)
        return await self._settle(fast, partial(self._retry, get, refusal=404))

    async def replace(self, key: str, body: bytes) -> None:
        place = self._place(key)

        async def repeat() -> None:
            await self._retry(lambda s3: s3.put_object(Bucket=self.bucket, Key=place, Body=body))

        fast = partial(obstore_client.replace, key=place, body=body)
        await self._settle(fast, repeat, len(body))

    async def read_version(self, key: str) -> Version | None:
        place = self._place(key)

        def get(s3: "S3Client") -> Version:
            answer = s3.get_object(Bucket=self.bucket, Key=place)
            with contextlib.closing(answer["Body"]) as body:
                return Version(body.read(), answer["ETag"])

        fast = partial(obstore_client.read_version, key=place)
        return await self._settle(fast, partial(self._retry, get, refusal=404))

    async def replace_version(self, key: str, body: bytes, tag: str) -> bool:
        place = self._place(key)

        def put(s3: "S3Client") -> object:
            return s3.put_object(Bucket=self.bucket, Key=place, Body=body, IfMatch=tag)

        async def repeat() -> bool:
            return await self._retry(put, refusal=412) is not None

        fast = partial(obstore_client.replace_version, key=place, body=body, tag=tag)
        return await self._settle(fast, repeat, len(body))

    async def delete(self, key: str) -> None:
        place = self._place(key)

        async def repeat() -> None:
            await self._retry(lambda s3: s3.delete_object(Bucket=self.bucket, Key=place))

        await self._settle(partial(obstore_client.delete, key=place), repeat)

    async def folders(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        # Some servers repeat the folder that a listing starts after: ask for one too many.
        start = f"{prefix}{after}/" if after else ""
        query = self._query(prefix, start) | {"Delimiter": "/"}

        async def repeat() -> list[str]:
            entries = await self._listing(query, "CommonPrefixes", limit + bool(after))
            return [entry["Prefix"].removesuffix("/").rpartition("/")[2] for entry in entries]

        if after or limit <= KEYS_PER_PAGE:
            names = await repeat()
        else:
            fast = partial(obstore_client.list_names, folder=self.prefix + prefix)
            names = await self._settle(fast, repeat)
        return [name for name in names if name != after][:limit]

    async def close(self) -> None:
        await asyncio.to_thread(self._threads.shutdown)
        if "_botocore" in vars(self):
            self._botocore.close()

    async def list(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        async def repeat() -> list[str]:
            entries = await self._listing(self._query(prefix, after), "Contents", limit)
            return [entry["Key"] for entry in entries[:limit]]

        if limit < KEYS_PER_PAGE or not prefix.endswith("/"):
            keys = await repeat()
        else:
            folder, start = self.prefix + prefix, after and self.prefix + after
            listed = partial(obstore_client.list_folder, folder=folder, after=start, limit=limit)
            keys = await self._settle(listed, repeat)
        return [key.removeprefix(self.prefix) for key in keys]

    def _query(self, prefix: str, after: str) -> dict[str, Any]:
        query = {"Bucket": self.bucket, "Prefix": self.prefix + prefix}
        return query | ({"StartAfter": self.prefix + after} if after else {})

    async def _listing(self, query: dict[str, Any], part: str, limit: int) -> Listing:
        # obstore takes no prefix that ends within a name, and no limit.
        query["MaxKeys"] = min(limit, 1000)
        entries: Listing = []
        while len(entries) < limit:
            page: Any = await self._retry(lambda s3: s3.list_objects_v2(**query))
            entries.extend(page.get(part, ()))
            if not page["IsTruncated"]:
                break
            query["ContinuationToken"] = page["NextContinuationToken"]
        return entries

    def _place(self, key: str) -> str:
        return self.prefix + check_key(key)

    async def _settle(
        self,
        request: Callable[[obstore_client.Client], Awaitable[T]],
        repeat: Callable[[], Awaitable[T]],
        size: int = 0,
    ) -> T:
        """Return the outcome of `request`, or of `repeat` where obstore knows none."""
        client = None if size > obstore_client.MAX_BODY_BYTES else await self._obstore()
        if client is None:
            return await repeat()
        try:
            async with self._permit():
                outcome = await request(client)
        except Exception as error:  # a panic in Rust is one as well
            self._note_failure(error)
            self._tell_retry(error)
        else:
            self._failures = 0
            return outcome
        await asyncio.sleep(random.uniform(0, FIRST_BACKOFF))
        return await repeat()

    def _note_failure(self, error: Exception) -> None:
        self._failures += 1
        if self._failures < MAX_FAILURES:
            return
        self._failures, self._rest_until = 0, monotonic() + REST_SECONDS
        sentence = str(error).partition("\n")[0]
        logger.warning(
            "For %g s the bucket %s is reached by botocore alone, which takes more CPU: obstore "
            "failed %d times where botocore did not. It says: %s",
            *(REST_SECONDS, self.bucket, MAX_FAILURES, sentence),
        )

    def _tell_retry(self, error: Exception) -> None:
        if self.on_retry is not None:
            self.on_retry(type(error).__name__)

    def _permit(self) -> asyncio.Semaphore:
        """Return the bound on requests at once, of this event loop."""
        loop = asyncio.get_running_loop()
        if self._permits is None or self._permits[0] is not loop:
            self._permits = (loop, asyncio.Semaphore(MAX_REQUESTS))
        return self._permits[1]

    async def _obstore(self) -> obstore_client.Client | None:
        """Return obstore's client, made at its first use; None where only botocore is of use."""
        if monotonic() < self._rest_until or not obstore_client.is_usable():
            return None
        if self._client is None:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._threads, self._connect)
        return self._client

    def _connect(self) -> None:
        with self._connecting:
            if self._client is not None or monotonic() < self._rest_until:
                return
            with contextlib.suppress(Exception):  # botocore meets the same, and has words for it
                self._client = obstore_client.connect(
                    self.bucket, self.access, load_botocore=lambda: self._botocore
                )
            if self._client is None:
                self._rest_until = monotonic() + REST_SECONDS

    @cached_property
    def _botocore(self) -> "BotocoreClient":
        from perdure.storage.botocore_client import BotocoreClient  # botocore is slow to import

        return BotocoreClient(self.bucket, self.access, THREADS)

    async def _retry(
        self, request: Callable[["S3Client"], T], refusal: int | None = None
    ) -> T | None:
        """Send `request` by botocore until its outcome is known, with exponential backoff.

        Returns None where the answer is the status `refusal`.
        """
        loop, deadline = asyncio.get_running_loop(), monotonic() + self.retry_seconds
        backoff = FIRST_BACKOFF
        while True:
            try:
                return await loop.run_in_executor(self._threads, self._send, request, refusal)
            except StoreUnavailable as error:
                # Full jitter, so that writers who were refused together do not return together.
                pause = random.uniform(0, backoff)
                if monotonic() + pause > deadline:
                    raise
                self._tell_retry(error)
            await asyncio.sleep(pause)
            backoff = min(2 * backoff, MAX_BACKOFF)

    def _send(self, request: Callable[["S3Client"], T], refusal: int | None) -> T | None:
        try:
            return self._botocore.send(request, refusal)
        except StoreError:
            self._failures = 0  # obstore is not to blame
            raise
