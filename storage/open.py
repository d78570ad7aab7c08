"""From the URL of a store to the store."""

from pathlib import Path
from urllib.parse import unquote

from storage.files import FileStore
from storage.s3 import S3Access, S3Store
from storage.store import Store


def open_store(url: str, access: S3Access | None = None) -> Store:
    """The store at `s3://bucket/prefix` or `file:///folder`; nothing is asked of it yet.

    `access` is for S3; without it boto3 looks into the environment and its files as always.
    Raises ValueError where the URL is neither.
    """
    scheme, _, rest = url.partition("://")
    bucket, _, prefix = rest.partition("/")
    if scheme == "s3" and bucket:
        return S3Store(bucket, prefix, access)
    if scheme == "file" and bucket in ("", "localhost") and prefix:
        return FileStore(Path("/", unquote(prefix)))
    raise ValueError(
        f"{url!r} is not the URL of a store: write s3://bucket/prefix or file:///folder (three "
        "slashes: the path is absolute)."
    )
