"""Fast reads from an S3 server of this machine.

boto3 takes 0.3 s of CPU to load and some 2 ms a request, which a command that lists a hundred
conversations, or completes a word in a shell, cannot spare. obstore reads objects in a tenth of
that; what it cannot do is list folders from one on.
"""

import asyncio
import hashlib
import hmac
import threading
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

from obstore.exceptions import BaseError
from obstore.store import S3Store as ObjectStore

from perdure.storage.access import read_access
from perdure.storage.obstore_client import list_names
from perdure.storage.store import KEYS_PER_PAGE, S3Access, Version, check_key

if TYPE_CHECKING:
    from obstore.store import S3Credential

    from perdure.storage.s3 import S3Store

LOCAL_HOSTS = ("127.0.0.1", "localhost")
TIMEOUT = 10.0
FIRST_BYTES = 1024 * 1024
"""A larger object is left to an `S3Store`, as is an empty one, which has no range."""

THREADS = 4
EMPTY_SHA256 = hashlib.sha256().hexdigest()


class LocalS3Store:
    """A `Store` that reads plain answers itself, and leaves all else to an `S3Store`.

    What is written, and every answer but the expected ones, takes the way of all others: with
    retries, and with errors that say what to do.
    """

    lists_from_names = True
    """That `folders` from a name on takes one request, and no other library to load."""

    def __init__(self, bucket: str, prefix: str, access: S3Access) -> None:
        self.bucket = bucket
        self.prefix = prefix.strip("/") + "/" if prefix.strip("/") else ""
        self.access = access
        self._host = urlsplit(access.endpoint_url or "").netloc
        self._of_thread = threading.local()
        self._connections: list[HTTPConnection] = []
        weakref.finalize(self, _close_all, self._connections)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="s3")

    @cached_property
    def _objects(self) -> ObjectStore:
        return ObjectStore(
            self.bucket,
            # By this name, for the environment may have another endpoint.
            aws_endpoint_url_s3=self.access.endpoint_url or "",
            region=self.access.region or "",
            virtual_hosted_style_request=False,
            credential_provider=self._credentials,
            client_options={"allow_http": True, "timeout": f"{TIMEOUT:.0f}s"},
            retry_config={"max_retries": 0},
        )

    def _credentials(self) -> "S3Credential":
        key, secret = self.access.access_key or "", self.access.secret_key or ""
        return {"access_key_id": key, "secret_access_key": secret, "expires_at": None}

    @cached_property
    def _fallback(self) -> "S3Store":
        from perdure.storage.s3 import S3Store  # needs obstore

        return S3Store(self.bucket, self.prefix, self.access)

    async def create(self, key: str, body: bytes) -> bool:
        return await self._fallback.create(key, body)

    async def replace(self, key: str, body: bytes) -> None:
        await self._fallback.replace(key, body)

    async def read_version(self, key: str) -> Version | None:
        return await self._fallback.read_version(key)

    async def replace_version(self, key: str, body: bytes, tag: str) -> bool:
        return await self._fallback.replace_version(key, body, tag)

    async def delete(self, key: str) -> None:
        await self._fallback.delete(key)

    async def read(self, key: str) -> bytes | None:
        place = self.prefix + check_key(key)
        try:
            # A range needs one answer of obstore's threads, where a whole object needs two.
            body = await self._objects.get_range_async(place, start=0, length=FIRST_BYTES)
        except FileNotFoundError as error:
            if "<Code>NoSuchKey</Code>" in str(error):
                return None
        except BaseError:
            pass
        else:
            if len(body) < FIRST_BYTES:
                return bytes(body)
        return await self._fallback.read(key)

    async def folders(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        if limit > KEYS_PER_PAGE and not after:
            with suppress(BaseError):
                return (await list_names(self._objects, self.prefix + prefix))[:limit]
        # Some servers repeat the folder that a listing starts after: ask for one too many.
        start = f"{prefix}{after}/" if after else ""
        listed = await self._list(prefix, start, limit + 1, "CommonPrefixes/Prefix", delimiter="/")
        if listed is None:
            return await self._fallback.folders(prefix, after, limit)
        names = (name.removesuffix("/").rpartition("/")[2] for name in listed)
        return [name for name in names if name != after][:limit]

    async def close(self) -> None:
        await asyncio.to_thread(self._threads.shutdown)
        _close_all(self._connections)
        if "_fallback" in vars(self):
            await self._fallback.close()

    async def _list(
        self, prefix: str, after: str, limit: int, path: str, **query: str
    ) -> list[str] | None:
        """List what `path` names in the answers; None after an unexpected one."""
        query |= {"list-type": "2", "prefix": self.prefix + prefix}
        query |= {"start-after": self.prefix + after} if after else {}
        query["max-keys"] = str(min(limit, KEYS_PER_PAGE))
        names: list[str] = []
        while True:
            status, body = await self._get("", query)
            if status != 200:
                return None
            page = _parse_page(body)
            names += [element.text or "" for element in page.iterfind(path)]
            token = page.findtext("NextContinuationToken")
            if len(names) >= limit or not token:
                return names
            query["continuation-token"] = token

    async def _get(self, key: str, query: Mapping[str, str]) -> tuple[int, bytes]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._send, key, dict(query))

    def _send(self, key: str, query: Mapping[str, str]) -> tuple[int, bytes]:
        """Send a signed GET; the status is 0 where no whole answer came."""
        path = quote(f"/{self.bucket}/{key}".removesuffix("/"), safe="/-_.~")
        text = "&".join(f"{name}={quote(query[name], safe='-_.~')}" for name in sorted(query))
        headers = sign_request(self.access, self._host, path, text, datetime.now(UTC))
        connection = self._connection()
        try:
            connection.request("GET", f"{path}?{text}" if text else path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, HTTPException):
            connection.close()  # the next request opens it again
            return 0, b""

    def _connection(self) -> HTTPConnection:
        """Return the connection of this thread."""
        connection: HTTPConnection | None = getattr(self._of_thread, "connection", None)
        if connection is None:
            connection = self._of_thread.connection = HTTPConnection(self._host, timeout=TIMEOUT)
            self._connections.append(connection)
        return connection

    async def list(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        listed = await self._list(prefix, after, limit, "Contents/Key")
        if listed is None:
            return await self._fallback.list(prefix, after, limit)
        return [key.removeprefix(self.prefix) for key in listed[:limit]]


def _close_all(connections: Sequence[HTTPConnection]) -> None:
    for connection in connections:
        connection.close()


def find_local_access(access: S3Access | None, env: Mapping[str, str]) -> S3Access | None:
    """Return the whole access to a server of this machine, given or of the environment.

    None where the server is another, or where boto3 has to look for something.
    """
    access = access or read_access(env)
    if access is None or not access.is_whole():
        return None
    url = urlsplit(access.endpoint_url or "")
    is_local = url.scheme == "http" and url.hostname in LOCAL_HOSTS and url.path in ("", "/")
    return access if is_local else None


def sign_request(
    access: S3Access, host: str, path: str, query: str, now: datetime
) -> dict[str, str]:
    """Return the headers of a GET; source: AWS Signature Version 4 for S3."""
    stamp = f"{now:%Y%m%dT%H%M%SZ}"
    headers = {"host": host, "x-amz-content-sha256": EMPTY_SHA256, "x-amz-date": stamp}
    names = ";".join(headers)
    lines = [f"{name}:{value}" for name, value in headers.items()]
    request = "\n".join(["GET", path, query, *lines, "", names, EMPTY_SHA256])
    scope = (stamp[:8], access.region or "", "s3", "aws4_request")
    digest = hashlib.sha256(request.encode()).hexdigest()
    key = f"AWS4{access.secret_key}".encode()
    for part in (*scope, "\n".join(["AWS4-HMAC-SHA256", stamp, "/".join(scope), digest])):
        key = hmac.digest(key, part.encode(), "sha256")
    credential = f"{access.access_key}/{'/'.join(scope)}"
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={credential},SignedHeaders={names},Signature={key.hex()}"
    )
    return headers


def _parse_page(body: bytes) -> ElementTree.Element:
    """Parse a listing, without its namespace."""
    root = ElementTree.fromstring(body)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root
