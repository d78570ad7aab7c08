"""Requests to a bucket through obstore: the answers that say plainly what was done.

obstore is written in Rust and takes a fraction of botocore's CPU. Its errors are sentences, so only
two answers are read from them; how else a request ended is for botocore to find out.
"""

import os
import re
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from obstore.exceptions import AlreadyExistsError, PreconditionError
from obstore.store import S3Store as ObstoreS3

from perdure.storage.access import read_access
from perdure.storage.exit_pause import pause_at_exit
from perdure.storage.store import KEYS_PER_PAGE, S3Access, Version

if TYPE_CHECKING:
    from botocore.credentials import Credentials
    from obstore.store import ClientConfig, S3Credential, S3CredentialProvider

    from perdure.storage.botocore_client import BotocoreClient

CONNECT_TIMEOUT = "3s"
READ_TIMEOUT = "10s"  # without a byte
TIMEOUT = "10min"

MAX_BODY_BYTES = 1024 * 1024
"""A larger body may take longer to send than READ_TIMEOUT, which no sent byte prolongs."""

CREDENTIALS_LIFETIME = timedelta(minutes=10)
"""Time for which botocore's credentials are good; obstore asks for them again after half of it."""

# obstore has one error for a taken key and for a conflict, and one for a missing key and bucket.
TAKEN = "status code: 412 "
ABSENT = "<Code>NoSuchKey</Code>"

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
_HOST = re.compile(r"[A-Za-z0-9._:\[\]-]+")

_pid: int | None = None
"""The process that has obstore's threads: a fork of it lacks them, and would wait for ever."""


class Client(Protocol):
    """The part of obstore's client that a store needs."""

    async def put_async(
        self, path: str, file: bytes, *, mode: Any = None, use_multipart: bool | None = None
    ) -> Any: ...

    async def get_async(self, path: str) -> Any: ...

    async def delete_async(self, paths: str) -> Any: ...

    def list(
        self, prefix: str, *, offset: str | None = None, chunk_size: int = 50
    ) -> AsyncIterator[Sequence[Any]]: ...

    async def list_with_delimiter_async(self, prefix: str | None = None) -> Any: ...


async def create(client: Client, key: str, body: bytes) -> bool:
    try:
        await client.put_async(key, body, mode="create", use_multipart=False)
    except AlreadyExistsError as error:
        if TAKEN in str(error):
            return False
        raise
    return True


async def read(client: Client, key: str) -> bytes | None:
    try:
        answer = await client.get_async(key)
        return bytes(await answer.bytes_async())
    except FileNotFoundError as error:
        if ABSENT in str(error):
            return None
        raise


async def replace(client: Client, key: str, body: bytes) -> None:
    await client.put_async(key, body, use_multipart=False)


async def read_version(client: Client, key: str) -> Version | None:
    try:
        answer = await client.get_async(key)
        body, tag = bytes(await answer.bytes_async()), answer.meta["e_tag"]
    except FileNotFoundError as error:
        if ABSENT in str(error):
            return None
        raise
    if tag is None:
        raise LookupError("the answer has no ETag")
    return Version(body, tag)


async def replace_version(client: Client, key: str, body: bytes, tag: str) -> bool:
    try:
        await client.put_async(key, body, mode={"e_tag": tag}, use_multipart=False)
    except PreconditionError as error:
        if TAKEN in str(error):
            return False
        raise
    return True


async def delete(client: Client, key: str) -> None:
    await client.delete_async(key)


async def list_folder(client: Client, folder: str, after: str, limit: int) -> list[str]:
    """List the keys that begin with `folder`, which ends with a slash, and sort after `after`.

    obstore always asks for whole pages of 1,000 keys: it is no gain where a few will do.
    """
    keys: list[str] = []
    # Not `anext` with a default, which raises SystemError with obstore's awaitables.
    async for page in client.list(folder, offset=after or None, chunk_size=KEYS_PER_PAGE):
        keys += [found["path"] for found in page]
        if len(keys) >= limit:
            break
    return keys[:limit]


async def list_names(client: Client, folder: str) -> list[str]:
    """List the names between `folder`, which ends with a slash, and the next slash."""
    found = await client.list_with_delimiter_async(folder or None)
    return [path.rpartition("/")[2] for path in found["common_prefixes"]]


def is_usable() -> bool:
    """Tell whether this process may use obstore."""
    return _pid in (None, os.getpid())


def connect(
    bucket: str, access: S3Access, load_botocore: Callable[[], "BotocoreClient"]
) -> Client | None:
    """Create a client with the endpoint and the credentials that botocore finds.

    An `access` that has all of them needs no botocore. None where there are no credentials, or
    obstore would panic over a malformed name or endpoint: botocore has words for both.
    """
    global _pid
    if access == S3Access():
        access = _read_plain_access() or access
    endpoint, region, bundle = access.endpoint_url, access.region, os.environ.get("AWS_CA_BUNDLE")
    if access.is_whole():
        provide: S3CredentialProvider = partial(_fixed_credentials, access)
    else:
        botocore_client = load_botocore()
        credentials = botocore_client.credentials()
        if credentials is None:
            return None
        provide = partial(_frozen_credentials, credentials)
        meta = botocore_client.client().meta
        endpoint, region = meta.endpoint_url, meta.region_name
        bundle = botocore_client.session.get_config_variable("ca_bundle")
    if endpoint is None or not _is_well_formed(bucket, endpoint):
        return None
    _pid = os.getpid()
    pause_at_exit()
    return _create_client(bucket, endpoint, region or "us-east-1", provide, bundle)


def _read_plain_access() -> S3Access | None:
    """Return the access of the environment to a server without TLS, where there is no more."""
    access = read_access(os.environ)
    return access if access and (access.endpoint_url or "").startswith("http://") else None


def _create_client(
    bucket: str, endpoint: str, region: str, provide: "S3CredentialProvider", bundle: str | None
) -> Client:
    # AWS alone serves a bucket under a host name of its own, for which certificates allow no dots.
    is_host = ".amazonaws.com" in endpoint and "." not in bucket
    certificates: ClientConfig = {"root_certificate": Path(bundle).read_bytes()} if bundle else {}
    return ObstoreS3(
        bucket,
        # By these names, for the environment may have another endpoint and style.
        aws_endpoint_url_s3=endpoint.replace("://", f"://{bucket}.", 1) if is_host else endpoint,
        virtual_hosted_style_request=is_host,
        disable_bulk_delete=True,
        region=region,
        credential_provider=provide,
        client_options={
            "allow_http": True,
            "connect_timeout": CONNECT_TIMEOUT,
            "read_timeout": READ_TIMEOUT,
            "timeout": TIMEOUT,
            **certificates,
        },
        retry_config={"max_retries": 0},  # the retries are ours
    )


def _is_well_formed(bucket: str, endpoint: str) -> bool:
    try:
        url = urlsplit(endpoint)
        is_url = url.scheme in ("http", "https") and url.port != 0
    except ValueError:
        return False
    return is_url and bool(_BUCKET.fullmatch(bucket) and _HOST.fullmatch(url.netloc))


def _fixed_credentials(access: S3Access) -> "S3Credential":
    return {
        "access_key_id": access.access_key or "",
        "secret_access_key": access.secret_key or "",
        "expires_at": None,
    }


def _frozen_credentials(credentials: "Credentials") -> "S3Credential":
    frozen = credentials.get_frozen_credentials()  # renews them if need be
    return {
        "access_key_id": frozen.access_key or "",
        "secret_access_key": frozen.secret_key or "",
        "token": frozen.token,
        "expires_at": datetime.now(UTC) + CREDENTIALS_LIFETIME,
    }
