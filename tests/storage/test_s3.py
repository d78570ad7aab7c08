"""A bucket behind a faulty network, and behind wrong settings."""

import os
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from perdure.storage.errors import StoreError, StoreRefused, StoreUnavailable
from perdure.storage.probe import probe
from perdure.storage.s3 import S3Store
from perdure.storage.store import S3Access
from reliability.chaos.proxy import Fault, FaultyProxy

SHORT_RETRY = 0.5  # seconds of retries that are sure to run out


@pytest_asyncio.fixture
async def proxy(access: S3Access) -> AsyncIterator[FaultyProxy]:
    assert access.endpoint_url
    async with FaultyProxy(access.endpoint_url, seed=0, rate=0.0).listening() as proxy:
        yield proxy


@pytest_asyncio.fixture
async def store(bucket: str, access: S3Access, proxy: FaultyProxy) -> AsyncIterator[S3Store]:
    store = S3Store(bucket, access=replace(access, endpoint_url=proxy.endpoint))
    yield store
    await store.close()


TRANSIENT_FAULTS = [
    Fault.THROTTLED,
    Fault.TOO_MANY,
    Fault.CONFLICT,
    Fault.LOST,
]


@pytest.mark.parametrize("fault", TRANSIENT_FAULTS)
async def test_a_create_without_effect_is_retried(
    store: S3Store, proxy: FaultyProxy, fault: Fault
) -> None:
    proxy.faults.extend([fault, fault])
    assert await store.create("a", b"one")
    assert await store.read("a") == b"one"
    assert proxy.requests == 4


async def test_a_create_whose_answer_is_lost_finds_its_own_object(
    store: S3Store, proxy: FaultyProxy
) -> None:
    proxy.faults.append(Fault.UNANSWERED)
    assert not await store.create("a", b"one")
    assert await store.read("a") == b"one"


@pytest.mark.parametrize("fault", [*TRANSIENT_FAULTS, Fault.UNANSWERED, Fault.TORN])
async def test_a_read_is_retried_until_the_object_is_complete(
    store: S3Store, proxy: FaultyProxy, fault: Fault
) -> None:
    await store.create("a", b"one two three")
    proxy.faults.append(fault)
    assert await store.read("a") == b"one two three"


@pytest.mark.parametrize("fault", [*TRANSIENT_FAULTS, Fault.UNANSWERED, Fault.TORN])
async def test_a_list_is_retried(store: S3Store, proxy: FaultyProxy, fault: Fault) -> None:
    await store.create("a/b/c", b"")
    proxy.faults.extend([fault, fault])
    assert await store.list("a/") == ["a/b/c"]
    assert await store.folders("a/") == ["b"]


async def test_an_answer_cut_by_a_reset_is_retried(bucket: str, access: S3Access) -> None:
    assert access.endpoint_url
    torn = FaultyProxy(access.endpoint_url, 0, 1.0, {Fault.TORN: 1.0})
    async with torn.listening() as network:
        reached = replace(access, endpoint_url=network.endpoint)
        store = S3Store(bucket, access=reached, retry_seconds=SHORT_RETRY)
        with pytest.raises(StoreUnavailable):
            await store.list("")
        await store.close()


async def test_retries_end_after_retry_seconds(
    bucket: str, access: S3Access, proxy: FaultyProxy
) -> None:
    reached = replace(access, endpoint_url=proxy.endpoint)
    store = S3Store(bucket, access=reached, retry_seconds=SHORT_RETRY)
    assert await store.read("a") is None  # connects before the time of the retries begins
    proxy.faults.extend([Fault.THROTTLED] * 1000)
    error = await refusal(store)
    assert isinstance(error, StoreUnavailable)
    assert bucket in str(error)
    assert "503 SlowDown" in str(error)
    assert 1 < proxy.requests < 1000


async def test_an_unreachable_server_is_unavailable(access: S3Access) -> None:
    with socket.socket() as bound:  # a port that nobody listens on, and nobody else can take
        bound.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{bound.getsockname()[1]}"
        gone = S3Store(
            "bucket", access=replace(access, endpoint_url=endpoint), retry_seconds=SHORT_RETRY
        )
        error = await refusal(gone)
    assert isinstance(error, StoreUnavailable)
    assert endpoint in str(error)


async def test_a_server_without_conditional_writes_is_not_retried(
    store: S3Store, proxy: FaultyProxy
) -> None:
    proxy.faults.append(Fault.NOT_IMPLEMENTED)
    error = await refusal(store)
    assert isinstance(error, StoreRefused)
    assert "If-None-Match" in str(error)
    assert proxy.requests == 1


async def test_a_wrong_secret_is_refused(bucket: str, access: S3Access) -> None:
    error = await refusal(S3Store(bucket, access=replace(access, secret_key="wrong")))
    assert isinstance(error, StoreRefused)
    assert f"The bucket {bucket} at {access.endpoint_url}" in str(error)
    assert "SignatureDoesNotMatch: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in str(error)


async def test_an_unknown_access_key_is_refused(bucket: str, access: S3Access) -> None:
    error = await refusal(S3Store(bucket, access=replace(access, access_key="nobody")))
    assert isinstance(error, StoreRefused)
    assert "InvalidAccessKeyId: set AWS_ACCESS_KEY_ID" in str(error)


async def test_a_missing_bucket_is_refused(access: S3Access) -> None:
    store = S3Store("no-such-bucket", access=access)
    for request in (store.read("a"), store.list(""), store.folders(""), probe(store)):
        with pytest.raises(StoreRefused, match="NoSuchBucket: create the bucket, or correct"):
            await request
    await store.close()


async def test_an_invalid_bucket_name_is_refused(access: S3Access) -> None:
    error = await refusal(S3Store("not a bucket", access=access))
    assert isinstance(error, StoreRefused)
    assert "correct its settings" in str(error)


async def test_an_endpoint_without_a_url_is_refused(access: S3Access) -> None:
    error = await refusal(S3Store("bucket", access=replace(access, endpoint_url="nowhere")))
    assert isinstance(error, StoreRefused)
    assert "set the endpoint to a URL" in str(error)


async def test_the_environment_names_endpoint_and_keys_as_for_any_other_program(
    bucket: str, access: S3Access
) -> None:
    variables = {
        "AWS_ENDPOINT_URL_S3": access.endpoint_url,
        "AWS_ACCESS_KEY_ID": access.access_key,
        "AWS_SECRET_ACCESS_KEY": access.secret_key,
    }
    with environment(variables):
        store = S3Store(bucket)
        assert await store.create("a", b"one")
    await store.close()


async def test_missing_access_keys_are_refused(access: S3Access, tmp_path: Path) -> None:
    nothing = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": str(tmp_path / "none")}
    nothing["AWS_SHARED_CREDENTIALS_FILE"] = nothing["AWS_CONFIG_FILE"]
    with environment(nothing):
        error = await refusal(S3Store("bucket", access=S3Access(access.endpoint_url)))
    assert isinstance(error, StoreRefused)
    assert "needs an access key: set AWS_ACCESS_KEY_ID" in str(error)


async def test_a_secret_key_is_not_in_the_repr(access: S3Access) -> None:
    assert access.secret_key
    assert access.secret_key not in repr(access)


@contextmanager
def environment(wanted: Mapping[str, str | None]) -> Iterator[None]:
    """Set these AWS settings and no others."""
    before = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    for name in before:
        del os.environ[name]
    os.environ.update({name: value for name, value in wanted.items() if value is not None})
    try:
        yield
    finally:
        for name in wanted:
            os.environ.pop(name, None)
        os.environ.update(before)


async def refusal(store: S3Store) -> StoreError:
    """Return the error of creating an object."""
    with pytest.raises(StoreError) as caught:
        await store.create("a", b"one")
    await store.close()
    return caught.value
