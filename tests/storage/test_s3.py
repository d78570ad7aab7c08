"""A bucket behind a bad network, and behind bad settings."""

import os
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from storage.errors import StoreError, StoreRefused, StoreUnavailable
from storage.probe import probe
from storage.s3 import S3Access, S3Store
from tests.chaos.proxy import Fault, FaultyProxy
from tests.storage.proxy import Proxy, Trouble, proxy_to

SHORT = 0.5  # seconds of patience, where it is sure to run out


@pytest.fixture
def proxy(access: S3Access) -> Iterator[Proxy]:
    assert access.endpoint_url
    with proxy_to(access.endpoint_url) as proxy:
        yield proxy


@pytest_asyncio.fixture
async def store(bucket: str, access: S3Access, proxy: Proxy) -> AsyncIterator[S3Store]:
    store = S3Store(bucket, access=replace(access, endpoint_url=proxy.endpoint))
    yield store
    await store.close()


PASSING = [Trouble.THROTTLED, Trouble.TOO_MANY, Trouble.CONFLICT, Trouble.CUT]


@pytest.mark.parametrize("trouble", PASSING)
async def test_a_create_that_did_not_happen_is_tried_again(
    store: S3Store, proxy: Proxy, trouble: Trouble
) -> None:
    proxy.troubles.extend([trouble, trouble])
    assert await store.create("a", b"one")
    assert await store.read("a") == b"one"
    assert proxy.asked == 4


async def test_a_create_whose_answer_is_lost_finds_its_own_object(
    store: S3Store, proxy: Proxy
) -> None:
    proxy.troubles.append(Trouble.UNANSWERED)
    assert not await store.create("a", b"one")
    assert await store.read("a") == b"one"


@pytest.mark.parametrize("trouble", [*PASSING, Trouble.UNANSWERED, Trouble.TORN])
async def test_a_read_is_tried_again_until_it_is_whole(
    store: S3Store, proxy: Proxy, trouble: Trouble
) -> None:
    await store.create("a", b"one two three")
    proxy.troubles.append(trouble)
    assert await store.read("a") == b"one two three"


@pytest.mark.parametrize("trouble", [*PASSING, Trouble.UNANSWERED, Trouble.TORN])
async def test_a_list_is_tried_again(store: S3Store, proxy: Proxy, trouble: Trouble) -> None:
    await store.create("a/b/c", b"")
    proxy.troubles.extend([trouble, trouble])
    assert await store.list("a/") == ["a/b/c"]
    assert await store.folders("a/") == ["b"]


async def test_an_answer_that_is_reset_half_way_is_no_answer(bucket: str, access: S3Access) -> None:
    assert access.endpoint_url
    torn = FaultyProxy(access.endpoint_url, 0, 1.0, {Fault.TORN: 1.0})
    async with torn.listening() as network:
        reached = replace(access, endpoint_url=network.endpoint)
        store = S3Store(bucket, access=reached, patience=SHORT)
        with pytest.raises(StoreUnavailable):
            await store.list("")
        await store.close()


async def test_patience_ends(bucket: str, access: S3Access, proxy: Proxy) -> None:
    reached = replace(access, endpoint_url=proxy.endpoint)
    store = S3Store(bucket, access=reached, patience=SHORT)
    assert await store.read("a") is None  # connected: its patience is not spent on that
    proxy.troubles.extend([Trouble.THROTTLED] * 1000)
    error = await refusal(store)
    assert isinstance(error, StoreUnavailable)
    assert bucket in str(error)
    assert "503 SlowDown" in str(error)
    assert 2 < proxy.asked < 1000


async def test_nobody_there_is_a_matter_of_time(access: S3Access) -> None:
    with socket.socket() as bound:  # a port that nobody listens on, and nobody else can take
        bound.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{bound.getsockname()[1]}"
        gone = S3Store("bucket", access=replace(access, endpoint_url=endpoint), patience=SHORT)
        error = await refusal(gone)
    assert isinstance(error, StoreUnavailable)
    assert endpoint in str(error)


async def test_a_store_without_conditional_writes_is_not_asked_twice(
    store: S3Store, proxy: Proxy
) -> None:
    proxy.troubles.append(Trouble.NOT_IMPLEMENTED)
    error = await refusal(store)
    assert isinstance(error, StoreRefused)
    assert "If-None-Match" in str(error)
    assert proxy.asked == 1


async def test_a_wrong_secret_is_for_the_operator(bucket: str, access: S3Access) -> None:
    error = await refusal(S3Store(bucket, access=replace(access, secret_key="wrong")))
    assert isinstance(error, StoreRefused)
    assert f"The bucket {bucket} at {access.endpoint_url}" in str(error)
    assert "SignatureDoesNotMatch: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in str(error)


async def test_an_unknown_key_is_for_the_operator(bucket: str, access: S3Access) -> None:
    error = await refusal(S3Store(bucket, access=replace(access, access_key="nobody")))
    assert isinstance(error, StoreRefused)
    assert "InvalidAccessKeyId: set AWS_ACCESS_KEY_ID" in str(error)


async def test_a_missing_bucket_is_for_the_operator(access: S3Access) -> None:
    store = S3Store("no-such-bucket", access=access)
    for asked in (store.read("a"), store.list(""), store.folders(""), probe(store)):
        with pytest.raises(StoreRefused, match="NoSuchBucket: create the bucket, or correct"):
            await asked
    await store.close()


async def test_a_bucket_that_cannot_be_is_for_the_operator(access: S3Access) -> None:
    error = await refusal(S3Store("not a bucket", access=access))
    assert isinstance(error, StoreRefused)
    assert "correct its settings" in str(error)


async def test_an_endpoint_that_is_no_url_is_for_the_operator(access: S3Access) -> None:
    error = await refusal(S3Store("bucket", access=replace(access, endpoint_url="nowhere")))
    assert isinstance(error, StoreRefused)
    assert "set the endpoint to a URL" in str(error)


async def test_the_environment_names_endpoint_and_keys_as_for_any_other_program(
    bucket: str, access: S3Access
) -> None:
    told = {
        "AWS_ENDPOINT_URL_S3": access.endpoint_url,
        "AWS_ACCESS_KEY_ID": access.access_key,
        "AWS_SECRET_ACCESS_KEY": access.secret_key,
    }
    with environment(told):
        store = S3Store(bucket)
        assert await store.create("a", b"one")
    await store.close()


async def test_no_keys_at_all_are_for_the_operator(access: S3Access, tmp_path: Path) -> None:
    nothing = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": str(tmp_path / "none")}
    nothing["AWS_SHARED_CREDENTIALS_FILE"] = nothing["AWS_CONFIG_FILE"]
    with environment(nothing):
        error = await refusal(S3Store("bucket", access=S3Access(access.endpoint_url)))
    assert isinstance(error, StoreRefused)
    assert "needs an access key: set AWS_ACCESS_KEY_ID" in str(error)


async def test_a_secret_is_not_shown(access: S3Access) -> None:
    assert access.secret_key
    assert access.secret_key not in repr(access)


@contextmanager
def environment(wanted: Mapping[str, str | None]) -> Iterator[None]:
    """These AWS settings and no others."""
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
    """Why an object cannot be created."""
    with pytest.raises(StoreError) as caught:
        await store.create("a", b"one")
    await store.close()
    return caught.value
