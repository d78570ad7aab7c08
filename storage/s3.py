"""A store in a bucket of any S3 server that honours `If-None-Match` on writes."""

import asyncio
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import boto3
from botocore import exceptions
from botocore.config import Config
from botocore.parsers import ResponseParserError
from urllib3.exceptions import HTTPError

from perdure.storage.errors import StoreError, StoreRefused, StoreUnavailable
from perdure.storage.store import S3Access, check_key

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

T = TypeVar("T")
Listing: TypeAlias = list[dict[str, Any]]

THREADS = 4  # boto3 holds the interpreter's lock: more threads only wait for it
CONNECT_TIMEOUT = 3.0
READ_TIMEOUT = 10.0
FIRST_BACKOFF = 0.05
MAX_BACKOFF = 2.0

# Codes with a 4xx status although the same request may succeed a moment later.
TRANSIENT_CODES = {
    "BadDigest",
    "ConditionalRequestConflict",
    "IncompleteBody",
    "OperationAborted",
    "RequestTimeout",
    "RequestTimeoutException",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TooManyRequests",
    "XAmzContentChecksumMismatch",
}

UNANSWERED = (
    exceptions.ConnectionError,
    exceptions.HTTPClientError,
    exceptions.IncompleteReadError,
    ResponseParserError,
    exceptions.FlexibleChecksumError,
    exceptions.CredentialRetrievalError,
    HTTPError,
)

SET_KEYS = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"

ADVICE = {
    "AccessDenied": "allow the access key s3:GetObject, s3:PutObject and s3:ListBucket on it, and "
    "s3:DeleteObject if it is to purge conversations",
    "AuthorizationHeaderMalformed": "set AWS_REGION to the bucket's region",
    "ExpiredToken": "renew the session's credentials",
    "InvalidAccessKeyId": f"{SET_KEYS} to a key that it knows",
    "InvalidBucketName": "correct the name of the bucket",
    "InvalidToken": "renew the session's credentials or unset AWS_SESSION_TOKEN",
    "NoSuchBucket": "create the bucket, or correct its name or the endpoint",
    "NotImplemented": "use a store that honours If-None-Match on PUT",
    "PermanentRedirect": "set AWS_REGION to the bucket's region",
    "RequestTimeTooSkewed": "set this machine's clock",
    "SignatureDoesNotMatch": f"{SET_KEYS} to a pair that belongs together",
}


class S3Store:
    """A `Store` in one bucket, its keys under `prefix`.

    A request whose outcome is unknown (no answer, 409, 429, 5xx) is repeated, the same key and the
    same bytes, for about `retry_seconds`; then StoreUnavailable is raised.
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
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="s3")
        self._connecting = Lock()
        self._connection: S3Client | None = None

    async def create(self, key: str, body: bytes) -> bool:
        request = {**self._object(key), "Body": body, "IfNoneMatch": "*"}
        return await self._retry(lambda s3: s3.put_object(**request), refusal=412) is not None

    async def read(self, key: str) -> bytes | None:
        request = self._object(key)

        def get(s3: "S3Client") -> bytes:
            # Not `with body`, which yields the stream without the checksum's check.
            with closing(s3.get_object(**request)["Body"]) as body:
                return body.read()

        return await self._retry(get, refusal=404)

    async def replace(self, key: str, body: bytes) -> None:
        request = {**self._object(key), "Body": body}
        await self._retry(lambda s3: s3.put_object(**request))

    async def delete(self, key: str) -> None:
        request = self._object(key)
        await self._retry(lambda s3: s3.delete_object(**request))

    async def folders(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        # Some servers repeat the folder that a listing starts after: ask for one too many.
        start = f"{prefix}{after}/" if after else ""
        query = self._query(prefix, start) | {"Delimiter": "/"}
        entries = await self._listing(query, "CommonPrefixes", limit + 1)
        names = (entry["Prefix"].removesuffix("/").rpartition("/")[2] for entry in entries)
        return [name for name in names if name != after][:limit]

    async def close(self) -> None:
        await asyncio.to_thread(self._threads.shutdown)
        if self._connection is not None:
            self._connection.close()

    async def list(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        entries = await self._listing(self._query(prefix, after), "Contents", limit)
        return [entry["Key"].removeprefix(self.prefix) for entry in entries[:limit]]

    def _query(self, prefix: str, after: str) -> dict[str, Any]:
        query = {"Bucket": self.bucket, "Prefix": self.prefix + prefix}
        return query | ({"StartAfter": self.prefix + after} if after else {})

    async def _listing(self, query: dict[str, Any], part: str, limit: int) -> Listing:
        query["MaxKeys"] = min(limit, 1000)
        entries: Listing = []
        while len(entries) < limit:
            page: Any = await self._retry(lambda s3: s3.list_objects_v2(**query))
            entries.extend(page.get(part, ()))
            if not page["IsTruncated"]:
                break
            query["ContinuationToken"] = page["NextContinuationToken"]
        return entries

    def _object(self, key: str) -> dict[str, Any]:
        return {"Bucket": self.bucket, "Key": self.prefix + check_key(key)}

    async def _retry(
        self, request: Callable[["S3Client"], T], refusal: int | None = None
    ) -> T | None:
        """Send `request` until its outcome is known, with exponential backoff.

        Returns None where the answer is the status `refusal`.
        """
        loop, deadline = asyncio.get_running_loop(), monotonic() + self.retry_seconds
        backoff = FIRST_BACKOFF
        while True:
            try:
                return await loop.run_in_executor(self._threads, self._send, request, refusal)
            except StoreUnavailable:
                # Full jitter, so that writers who were refused together do not return together.
                pause = random.uniform(0, backoff)
                if monotonic() + pause > deadline:
                    raise
            await asyncio.sleep(pause)
            backoff = min(2 * backoff, MAX_BACKOFF)

    def _send(self, request: Callable[["S3Client"], T], refusal: int | None) -> T | None:
        try:
            return request(self._client())
        except exceptions.ClientError as error:
            if _status(error) == refusal and _code(error) != "NoSuchBucket":
                return None
            raise _client_error(error, self._name()) from error
        # urllib3 raises its own error for a body that breaks off.
        except (exceptions.BotoCoreError, ResponseParserError, HTTPError) as error:
            raise _connection_error(error, self._name()) from error

    def _client(self) -> "S3Client":
        with self._connecting:
            self._connection = self._connection or _connect(self.access)
            return self._connection

    def _name(self) -> str:
        endpoint = self._connection and self._connection.meta.endpoint_url
        return f"The bucket {self.bucket} at {endpoint or self.access.endpoint_url or 'AWS'}"


def _connect(access: S3Access, style: Literal["auto", "path"] = "auto") -> "S3Client":
    """Create a client of its own session: boto3's default one may not be shared by threads.

    Only AWS serves a bucket under a host name of its own. The client alone knows whether the
    endpoint is another's, for it may come from the environment or from a file.
    """
    config = Config(
        connect_timeout=CONNECT_TIMEOUT,
        read_timeout=READ_TIMEOUT,
        retries={"total_max_attempts": 1},  # the retries are ours
        max_pool_connections=THREADS,
        s3={"addressing_style": style},
    )
    try:
        client = boto3.session.Session().client(
            "s3",
            endpoint_url=access.endpoint_url,
            aws_access_key_id=access.access_key,
            aws_secret_access_key=access.secret_key,
            region_name=access.region,
            config=config,
        )
    except ValueError as error:
        raise StoreRefused(f"{error}: set the endpoint to a URL like https://host:port.") from error
    if style == "path" or ".amazonaws.com" in client.meta.endpoint_url:
        return client
    client.close()
    return _connect(access, "path")


def _connection_error(error: Exception, name: str) -> StoreError:
    if isinstance(error, exceptions.NoCredentialsError | exceptions.PartialCredentialsError):
        return StoreRefused(f"{name} needs an access key: {SET_KEYS}, or AWS_PROFILE.")
    if isinstance(error, UNANSWERED):
        return StoreUnavailable(f"{name} does not answer as it should: {error}")
    return StoreRefused(f"{name} cannot be asked; correct its settings: {error}")


def _client_error(error: exceptions.ClientError, name: str) -> StoreError:
    status, code = _status(error), _code(error)
    message = f"{name} answered {status} {code}"
    if code != "NotImplemented" and (
        status in (408, 409, 429) or status >= 500 or code in TRANSIENT_CODES
    ):
        return StoreUnavailable(f"{message}: {error}")
    advice = ADVICE.get(code) or (ADVICE["AccessDenied"] if status == 403 else None)
    return StoreRefused(f"{message}: {advice or f'correct the settings; it says: {error}'}.")


def _status(error: exceptions.ClientError) -> int:
    return error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)


def _code(error: exceptions.ClientError) -> str:
    return error.response.get("Error", {}).get("Code", "")
