"""From URLs to stores."""

from pathlib import Path

import pytest

from storage.files import FileStore
from storage.open import open_store
from storage.s3 import S3Access, S3Store


@pytest.mark.parametrize(
    ("url", "bucket", "prefix"),
    [
        ("s3://bucket", "bucket", ""),
        ("s3://bucket/", "bucket", ""),
        ("s3://bucket/a", "bucket", "a/"),
        ("s3://bucket/a/b/", "bucket", "a/b/"),
    ],
)
def test_a_bucket_and_a_prefix(url: str, bucket: str, prefix: str) -> None:
    access = S3Access("http://127.0.0.1:1", "key", "secret")
    store = open_store(url, access)
    assert isinstance(store, S3Store)
    assert (store.bucket, store.prefix, store.access) == (bucket, prefix, access)


@pytest.mark.parametrize("url", ["file:///var/lib/perdure", "file://localhost/var/lib/perdure"])
def test_a_folder(url: str) -> None:
    store = open_store(url)
    assert isinstance(store, FileStore)
    assert store.root == Path("/var/lib/perdure")


def test_a_path_as_python_writes_it_is_read_back(tmp_path: Path) -> None:
    folder = tmp_path / "with space & 100%"
    store = open_store(folder.as_uri())
    assert isinstance(store, FileStore)
    assert store.root == folder


WRONG = ["", "bucket", "/var/lib", "s3://", "s3:///a", "s3:bucket", "http://host/bucket"]


@pytest.mark.parametrize("url", [*WRONG, "file://", "file:///", "file://var/lib", "gs://bucket"])
def test_anything_else_is_refused_with_a_sentence(url: str) -> None:
    with pytest.raises(ValueError, match="is not the URL of a store: write s3://bucket/prefix or"):
        open_store(url)
