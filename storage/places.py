"""The places of objects as libraries address them that read and write a store by themselves."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perdure.storage.files import FileStore
from perdure.storage.store import S3Access, Store

if TYPE_CHECKING:
    from perdure.storage.local_s3 import LocalS3Store
    from perdure.storage.s3 import S3Store


@dataclass(frozen=True)
class Place:
    """A folder at `url`, with the options of a client in Rust's object_store for it.

    `expires` says that the credentials are of a session, and are good for some minutes.
    """

    url: str
    options: dict[str, str] = field(default_factory=dict, repr=False)
    expires: bool = False


def find_place(store: Store, prefix: str) -> Place | None:
    """Find the place of a prefix, which ends with a slash; None in a store of another kind.

    Looks for credentials as the store does, which may take a request. Raises StoreRefused.
    """
    folder = prefix.rstrip("/")
    if isinstance(store, FileStore):
        return Place(str(store.root / folder))
    from perdure.storage.local_s3 import LocalS3Store  # needs obstore, as the next one
    from perdure.storage.s3 import S3Store

    if isinstance(store, S3Store | LocalS3Store):
        return _locate_in_bucket(store, folder)
    return None


def _locate_in_bucket(store: "S3Store | LocalS3Store", folder: str) -> Place:
    access, token = store.access, None
    if not access.is_whole():
        access, token = _look_up(store.bucket, access)
    options = {
        "aws_access_key_id": access.access_key,
        "aws_secret_access_key": access.secret_key,
        "aws_session_token": token,
        "aws_endpoint": access.endpoint_url,
        "aws_region": access.region or "us-east-1",
        "aws_virtual_hosted_style_request": "false",
        "allow_http": "true",
    }
    given = {name: value for name, value in options.items() if value is not None}
    return Place(f"s3://{store.bucket}/{store.prefix}{folder}", given, expires=token is not None)


def _look_up(bucket: str, access: S3Access) -> tuple[S3Access, str | None]:
    """Look up what the access lacks, as botocore does; return it and the token of a session."""
    from perdure.storage.botocore_client import BotocoreClient  # botocore is slow to import

    client = BotocoreClient(bucket, access, threads=1)
    try:
        meta, credentials = client.client().meta, client.credentials()
        frozen = credentials.get_frozen_credentials() if credentials else None
    finally:
        client.close()
    key, secret = (frozen.access_key, frozen.secret_key) if frozen else (None, None)
    token = frozen.token if frozen else None
    return S3Access(meta.endpoint_url, key, secret, meta.region_name), token
