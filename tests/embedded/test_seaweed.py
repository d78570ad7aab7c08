import os
import signal
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from perdure.embedded.errors import ProcessFailed
from perdure.embedded.seaweed import Seaweed
from tests.embedded.processes import is_alive


def client(store: Seaweed, secret_key: str | None = None) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=store.endpoint,
        aws_access_key_id=store.access_key,
        aws_secret_access_key=secret_key or store.secret_key,
        region_name="us-east-1",
    )


async def test_a_conditional_put_writes_an_object_once(seaweed: Seaweed) -> None:
    await seaweed.make_bucket("once")
    s3 = client(seaweed)
    s3.put_object(Bucket="once", Key="1", Body=b"first", IfNoneMatch="*")
    with pytest.raises(ClientError, match="PreconditionFailed"):
        s3.put_object(Bucket="once", Key="1", Body=b"second", IfNoneMatch="*")
    assert s3.get_object(Bucket="once", Key="1")["Body"].read() == b"first"


async def test_a_wrong_secret_key_is_refused(seaweed: Seaweed) -> None:
    await seaweed.make_bucket("closed")
    with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
        client(seaweed, secret_key="guessed").list_objects_v2(Bucket="closed")


async def test_a_bucket_may_be_created_twice(seaweed: Seaweed) -> None:
    await seaweed.make_bucket("twice")
    client(seaweed).put_object(Bucket="twice", Key="kept", Body=b"")
    await seaweed.make_bucket("twice")
    assert client(seaweed).list_objects_v2(Bucket="twice")["KeyCount"] == 1


@pytest.mark.long
async def test_objects_and_keys_survive_a_restart(tmp_path: Path) -> None:
    first = await Seaweed.start(tmp_path)
    await first.make_bucket("kept")
    client(first).put_object(Bucket="kept", Key="1", Body=b"still here")
    await first.stop()
    assert not is_alive(first.pid)
    second = await Seaweed.start(tmp_path)
    body = client(second).get_object(Bucket="kept", Key="1")["Body"].read()
    await second.stop()
    assert body == b"still here"
    assert (second.access_key, second.secret_key) == (first.access_key, first.secret_key)
    assert (tmp_path / "s3.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.long
async def test_objects_survive_a_killed_server(tmp_path: Path) -> None:
    first = await Seaweed.start(tmp_path)
    await first.make_bucket("kept")
    for number in range(100):
        client(first).put_object(Bucket="kept", Key=str(number), Body=b"x", IfNoneMatch="*")
    os.kill(first.pid, signal.SIGKILL)
    await first.process.wait()
    second = await Seaweed.start(tmp_path)
    count = client(second).list_objects_v2(Bucket="kept")["KeyCount"]
    await second.stop()
    assert count == 100


async def test_a_store_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "filerldb2").write_text("not a folder")
    with pytest.raises(ProcessFailed, match=r"(?s)weed .*filerldb2"):
        await Seaweed.start(tmp_path)
