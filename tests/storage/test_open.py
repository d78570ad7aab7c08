"""Opening stores by their URLs."""

from pathlib import Path

import pytest

from perdure.storage.files import FileStore
from perdure.storage.open import open_store
from perdure.storage.s3 import S3Store
from perdure.storage.store import S3Access


@pytest.mark.parametrize(
    ("url", "bucket", "prefix"),
    [
        ("s3://bucket", "bucket", ""),
        ("s3://bucket/", "bucket", ""),
        ("s3://bucket/a", "bucket", "a/"),
        ("s3://bucket/a/b/", "bucket", "a/b/"),
    ],
)
def test_an_s3_url_has_a_bucket_and_a_prefix(url: str, bucket: str, prefix: str) -> None:
    access = S3Access("http://127.0.0.1:1", "key", "secret")
    store = open_store(url, access)
    assert isinstance(store, S3Store)
    assert (store.bucket, store.prefix, store.access) == (bucket, prefix, access)


@pytest.mark.parametrize("url", ["file:///var/lib/perdure", "file://localhost/var/lib/perdure"])
def test_a_file_url_opens_its_folder(url: str) -> None:
    store = open_store(url)
    assert isinstance(store, FileStore)
    assert store.root == Path("/var/lib/perdure")


def test_a_path_written_by_as_uri_is_read_back(tmp_path: Path) -> None:
    folder = tmp_path / "with space & 100%"
    store = open_store(folder.as_uri())
    assert isinstance(store, FileStore)
    assert store.root == folder


WRONG = ["", "bucket", "/var/lib", "s3://", "s3:///a", "s3:bucket", "http://host/bucket"]


@pytest.mark.parametrize("url", [*WRONG, "file://", "file:///", "file://var/lib", "gs://bucket"])
def test_any_other_url_is_refused_with_a_sentence(url: str) -> None:
    with pytest.raises(ValueError, match="is not the URL of a store: write s3://bucket/prefix or"):
        open_store(url)


def test_a_secret_key_is_not_in_the_repr() -> None:
    assert "hidden" not in repr(S3Access("http://127.0.0.1:1", "key", "hidden", "us-east-1"))
