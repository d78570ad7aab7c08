"""A bucket behind a faulty network, and behind wrong settings."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio

from perdure.storage.errors import StoreError, StoreRefused, StoreUnavailable
from perdure.storage.probe import probe
from perdure.storage.s3 import S3Store
from perdure.storage.store import S3Access, list_folders
from reliability.chaos.proxy import Fault, FaultyProxy
from tests.storage.plain_server import CHUNKED, HEAD, PlainServer

ROOT = Path(__file__).parents[2]

KEYS = {
    "AWS_ACCESS_KEY_ID": "K2",
    "AWS_SECRET_ACCESS_KEY": "s",
    "AWS_DEFAULT_REGION": "eu-west-1",
}

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


@pytest.mark.long
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


@pytest.mark.long
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
    proxy.faults.extend([Fault.NOT_IMPLEMENTED] * 3)
    error = await refusal(store)
    assert isinstance(error, StoreRefused)
    assert "If-None-Match" in str(error)
    assert proxy.requests == 2  # once by obstore, and once by botocore, which has words for it


async def test_a_wrong_secret_is_refused(bucket: str, access: S3Access) -> None:
    error = await refusal(S3Store(bucket, access=replace(access, secret_key="wrong")))
    assert isinstance(error, StoreRefused)
    assert f"The bucket {bucket} at {access.endpoint_url}" in str(error)
    assert "SignatureDoesNotMatch: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in str(error)


async def test_an_unknown_access_key_is_refused(bucket: str, access: S3Access) -> None:
    error = await refusal(S3Store(bucket, access=replace(access, access_key="nobody")))
    assert isinstance(error, StoreRefused)
    assert "InvalidAccessKeyId: set AWS_ACCESS_KEY_ID" in str(error)


@pytest.mark.long
async def test_a_missing_bucket_is_refused(
    access: S3Access, caplog: pytest.LogCaptureFixture
) -> None:
    store = S3Store("no-such-bucket", access=access)
    reads = (store.read("a") for _ in range(20))
    for request in (*reads, store.list(""), store.folders(""), probe(store)):
        with pytest.raises(StoreRefused, match="NoSuchBucket: create the bucket, or correct"):
            await request
    assert caplog.records == [], "obstore is not to blame"
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


async def test_plain_answers_take_one_request_each(store: S3Store, proxy: FaultyProxy) -> None:
    assert await store.create("a", b"one")
    assert not await store.create("a", b"two")
    assert await store.read("a") == b"one"
    assert await store.read("b") is None
    await store.replace("a", b"two")
    await store.delete("a")
    await store.delete("a")
    assert proxy.requests == 7


async def test_a_body_too_large_for_one_time_limit_is_written_and_read(store: S3Store) -> None:
    body = bytes(range(256)) * 8 * 1024
    assert await store.create("a", body)
    assert not await store.create("a", body)
    assert await store.read("a") == body


async def test_a_profile_of_temporary_keys_signs_requests(tmp_path: Path) -> None:
    script = tmp_path / "keys"
    keys = {"Version": 1, "AccessKeyId": "K1", "SecretAccessKey": "s", "SessionToken": "t1"}
    script.write_text(f"#!/bin/sh\necho '{json.dumps(keys)}'\n")
    script.chmod(0o755)
    config = tmp_path / "config"
    config.write_text(f"[profile work]\nregion = eu-central-1\ncredential_process = {script}\n")
    variables = {"AWS_CONFIG_FILE": str(config), "AWS_PROFILE": "work"}
    async with PlainServer(HEAD + b"Content-Length: 0\r\n\r\n").listening() as server:
        with environment({**variables, "AWS_ENDPOINT_URL_S3": server.endpoint}):
            store = S3Store("bucket")
            assert await store.create("a", b"one")
            await store.close()
    [head] = server.heads
    assert "user-agent: object_store" in head
    assert "Credential=K1/" in head
    assert "/eu-central-1/s3/" in head
    assert "x-amz-security-token: t1" in head
    assert "if-none-match: *" in head


async def test_keys_and_endpoint_of_the_environment_need_no_botocore() -> None:
    async with PlainServer(HEAD + b"Content-Length: 0\r\n\r\n").listening() as server:
        variables = {**KEYS, "AWS_ENDPOINT_URL_S3": server.endpoint}
        for more, region in (({}, "eu-west-1"), ({"AWS_REGION": "eu-north-1"}, "eu-north-1")):
            with environment({**variables, **more}):
                store = S3Store("bucket")
                assert await store.create("a", b"one")
                assert "_botocore" not in vars(store)
                await store.close()
            assert f"Credential=K2/{datetime.now(UTC):%Y%m%d}/{region}/s3/" in server.heads[-1]


async def test_botocore_and_obstore_take_the_region_of_aws_region() -> None:
    async with PlainServer(HEAD + b"Content-Length: 0\r\n\r\n").listening() as server:
        variables = {**KEYS, "AWS_ENDPOINT_URL_S3": server.endpoint, "AWS_REGION": "eu-north-1"}
        with environment({**variables, "AWS_SESSION_TOKEN": "t"}):  # of which botocore knows more
            store = S3Store("bucket")
            assert await store.create("a", b"one")
            assert "_botocore" in vars(store)
            await store.close()
    [head] = server.heads
    assert "/eu-north-1/s3/" in head
    assert "x-amz-security-token: t" in head


async def test_given_keys_are_taken_whatever_the_environment_has(
    bucket: str, access: S3Access
) -> None:
    wrong = {
        "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ACCESS_KEY_ID": "wrong",
        "AWS_SESSION_TOKEN": "wrong",
        "AWS_REGION": "eu-central-1",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true",
    }
    with environment(wrong):
        store = S3Store(bucket, access=access)
        assert await store.create("a", b"one")
        assert await store.read("a") == b"one"
        await store.close()


async def test_a_server_that_obstore_cannot_read_is_read_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with PlainServer(CHUNKED).listening() as server:
        store = S3Store("bucket", access=S3Access(server.endpoint, "key", "secret", "us-east-1"))
        assert [await store.read("a") for _ in range(20)] == [b"one"] * 20
        await store.close()
    agents = Counter("object_store" in head for head in server.heads)
    assert agents == {True: 16, False: 20}
    [record] = caplog.records
    assert "reached by botocore alone" in record.getMessage()
    assert "Content-Length" in record.getMessage()


async def test_a_whole_folder_is_listed_by_obstore_and_a_part_of_it_by_botocore() -> None:
    found = b"<Key>p/a/1</Key><LastModified>2025-01-01T00:00:00.000Z</LastModified><Size>1</Size>"
    listed = b"<ListBucketResult><IsTruncated>false</IsTruncated>"
    listed += b"<Contents>%b</Contents></ListBucketResult>" % found
    answer = HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(listed), listed)
    async with PlainServer(answer).listening() as server:
        access = S3Access(server.endpoint, "key", "secret", "us-east-1")
        store = S3Store("bucket", "p", access)
        assert await store.list("a/", after="a/0") == ["a/1"]
        assert await store.list("a/", limit=1) == ["a/1"]
        assert await store.list("a") == ["a/1"]
        await store.close()
    assert ["object_store" in head for head in server.heads] == [True, False, False]
    assert "prefix=p%2Fa%2F" in server.heads[0]
    assert "start-after=p%2Fa%2F0" in server.heads[0]


async def test_all_names_of_a_folder_are_listed_by_obstore() -> None:
    listed = b"<ListBucketResult><IsTruncated>false</IsTruncated>"
    listed += b"<CommonPrefixes><Prefix>p/a/one/</Prefix></CommonPrefixes></ListBucketResult>"
    answer = HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(listed), listed)
    async with PlainServer(answer).listening() as server:
        access = S3Access(server.endpoint, "key", "secret", "us-east-1")
        store = S3Store("bucket", "p", access)
        assert await list_folders(store, "a/") == ["one"]
        assert await store.folders("a/") == ["one"]
        await store.close()
    assert ["object_store" in head for head in server.heads] == [True, False]
    assert "delimiter=%2F" in server.heads[0]
    assert "prefix=p%2Fa%2F" in server.heads[0]


@pytest.mark.long
async def test_a_fork_reads_and_writes_without_the_threads_of_its_parent(
    bucket: str, access: S3Access
) -> None:
    words = (bucket, access.endpoint_url, access.access_key, access.secret_key)
    command = [sys.executable, "-m", "tests.storage.forked_reader", *map(str, words)]
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, cwd=ROOT, check=True
    )
    before, *after = done.stdout.splitlines()
    assert before == "b'one' False", "keys that are given need no botocore"
    assert sorted(after) == ["b'one' False", "b'one' True"]


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
