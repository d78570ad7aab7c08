"""Opening a store by its URL."""

import os
from pathlib import Path
from urllib.parse import unquote

from perdure.references import BadReference, find_entry_points, load_entry_point
from perdure.storage.files import FileStore
from perdure.storage.store import S3Access, Store

STORE_GROUP = "perdure.stores"
"""The entry points of stores of other packages: functions that take a URL, by its scheme."""


def open_store_for_reading(url: str, access: S3Access | None = None) -> Store:
    """Open the store for a command that reads much and writes little, like `open_store`.

    Such a command does without boto3 where the store is on this machine.
    """
    scheme, _, rest = url.partition("://")
    bucket, _, prefix = rest.partition("/")
    if scheme == "s3" and bucket:
        from perdure.storage.local_s3 import LocalS3Store, find_local_access  # slow to import

        if local := find_local_access(access, os.environ):
            return LocalS3Store(bucket, prefix, local)
    return open_store(url, access)


def open_store(url: str, access: S3Access | None = None) -> Store:
    """Open the store at `s3://bucket/prefix` or `file:///folder`, without sending a request yet.

    `access` is for S3; without it boto3 searches the environment and its files as always. Another
    scheme is one of STORE_GROUP. Raises ValueError for any other URL.
    """
    scheme, _, rest = url.partition("://")
    bucket, _, prefix = rest.partition("/")
    if scheme == "s3" and bucket:
        from perdure.storage.s3 import S3Store  # needs obstore

        return S3Store(bucket, prefix, access)
    if scheme == "file" and bucket in ("", "localhost") and prefix:
        return FileStore(Path("/", unquote(prefix)))
    if scheme in find_entry_points(STORE_GROUP):
        try:
            store: Store = load_entry_point(STORE_GROUP, scheme)(url)
        except BadReference as error:
            raise ValueError(f"The store {url!r} cannot be opened: {error}.") from error
        return store
    raise ValueError(
        f"{url!r} is not the URL of a store: write s3://bucket/prefix or file:///folder (three "
        "slashes: the path is absolute)."
    )
