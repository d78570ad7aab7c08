"""Requests to a bucket through botocore, the core of boto3, with errors by who has to act."""

import os
from collections.abc import Callable
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Literal, TypeVar

import botocore.session
from botocore import exceptions
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.parsers import ResponseParserError
from urllib3.exceptions import HTTPError

from perdure.storage.access import read_region
from perdure.storage.errors import StoreError, StoreRefused, StoreUnavailable
from perdure.storage.store import S3Access

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

T = TypeVar("T")

CONNECT_TIMEOUT = 3.0
READ_TIMEOUT = 10.0

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


class BotocoreClient:
    """A client of one bucket, which connects at its first request."""

    def __init__(self, bucket: str, access: S3Access, threads: int) -> None:
        self.bucket = bucket
        self.access = access
        self.threads = threads
        self._connecting = Lock()
        self._connection: S3Client | None = None

    def send(self, request: Callable[["S3Client"], T], refusal: int | None = None) -> T | None:
        """Send `request` once; return None where the answer is the status `refusal`."""
        try:
            return request(self.client())
        except exceptions.ClientError as error:
            if _status(error) == refusal and _code(error) != "NoSuchBucket":
                return None
            raise _client_error(error, self._name()) from error
        # urllib3 raises its own error for a body that breaks off.
        except (exceptions.BotoCoreError, ResponseParserError, HTTPError) as error:
            raise _connection_error(error, self._name()) from error

    def client(self) -> "S3Client":
        with self._connecting:
            self._connection = self._connection or _connect(self.session, self.access, self.threads)
            return self._connection

    @cached_property
    def session(self) -> botocore.session.Session:
        return botocore.session.get_session()

    def credentials(self) -> "Credentials | None":
        """Return the credentials that requests are signed with. Raises botocore's errors."""
        if self.access.access_key and self.access.secret_key:
            return Credentials(self.access.access_key, self.access.secret_key)
        return self.session.get_credentials()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _name(self) -> str:
        endpoint = self._connection and self._connection.meta.endpoint_url
        return f"The bucket {self.bucket} at {endpoint or self.access.endpoint_url or 'AWS'}"


def _connect(
    session: botocore.session.Session,
    access: S3Access,
    threads: int,
    style: Literal["auto", "path"] = "auto",
) -> "S3Client":
    """Create a client that serves so many threads.

    Only AWS serves a bucket under a host name of its own. The client alone knows whether the
    endpoint is another's, for it may come from the environment or from a file.
    """
    config = Config(
        connect_timeout=CONNECT_TIMEOUT,
        read_timeout=READ_TIMEOUT,
        retries={"total_max_attempts": 1},  # the retries are ours
        max_pool_connections=threads,
        s3={"addressing_style": style},
    )
    try:
        client: S3Client = session.create_client(  # type: ignore[assignment]
            "s3",
            endpoint_url=access.endpoint_url,
            aws_access_key_id=access.access_key,
            aws_secret_access_key=access.secret_key,
            region_name=access.region or read_region(os.environ),
            config=config,
        )
    except ValueError as error:
        raise StoreRefused(f"{error}: set the endpoint to a URL like https://host:port.") from error
    if style == "path" or ".amazonaws.com" in client.meta.endpoint_url:
        return client
    client.close()
    return _connect(session, access, threads, "path")


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
