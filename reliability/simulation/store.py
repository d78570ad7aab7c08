"""A simulated bucket behind a faulty network, with the parts of obstore and botocore in use.

The faults are below S3Store: its own code tells them apart, asks again and gives up.
"""

import asyncio
import base64
import re
import zlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any, NoReturn, cast

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ReadTimeoutError,
)
from botocore.httpchecksum import Crc32Checksum, StreamingChecksumBody
from botocore.parsers import ResponseParserError
from obstore.exceptions import AlreadyExistsError, GenericError, PreconditionError

from perdure.storage.botocore_client import BotocoreClient
from perdure.storage.s3 import S3Store
from perdure.storage.store import KEYS_PER_PAGE, S3Access
from reliability.simulation.bucket import Bucket, make_tag

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

ENDPOINT = "https://bucket.simulated"
LATE_SECONDS = 10.0
"""Seconds after which a request that nobody waits for any more may still be carried out."""

REFUSALS = {
    "slow down": (503, "SlowDown"),
    "internal error": (500, "InternalError"),
    "too many": (429, "TooManyRequests"),
    "conflict": (409, "ConditionalRequestConflict"),
    "bad digest": (400, "BadDigest"),
}
"""Answers that say nothing was done."""

REQUEST_FAULTS: dict[str, Callable[[], Exception]] = {
    "unreachable": lambda: EndpointConnectionError(endpoint_url=ENDPOINT),
    "no connection": lambda: ConnectTimeoutError(endpoint_url=ENDPOINT),
    "reset before": lambda: ConnectionClosedError(endpoint_url=ENDPOINT),
}
"""Ways for a request not to arrive."""

RESPONSE_FAULTS: dict[str, Callable[[], Exception]] = {
    "reset after": lambda: ConnectionClosedError(endpoint_url=ENDPOINT),
    "time-out after": lambda: ReadTimeoutError(endpoint_url=ENDPOINT),
    "error after": lambda: make_error(500, "InternalError"),
    "garbled answer": lambda: ResponseParserError("not well-formed (invalid token)"),
}
"""Ways for an answer not to arrive, though it was done."""

RANDOM_NAME = re.compile(r"(?<=/memory-changes/rebuild-)[0-9a-f-]{36}|(?<=/index/)[0-9a-f]{32}")
"""A name that is another each time that a schedule is played: such names sort by age here."""

WRITES = (*REFUSALS, *REQUEST_FAULTS, *RESPONSE_FAULTS, "late commit")
READS = ("slow down", "internal error", "too many", *REQUEST_FAULTS, "torn body")
CHECKED_READS = (*READS, "wrong checksum")
DELETES = ("slow down", "internal error", *REQUEST_FAULTS, *RESPONSE_FAULTS, "late commit")
LISTS = ("slow down", "internal error", *REQUEST_FAULTS, "garbled answer")


class Client:
    """The part of botocore's client that S3Store uses."""

    reads: tuple[str, ...] = CHECKED_READS

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self.loop = bucket.loop

    def put_object(self, **params: Any) -> dict[str, Any]:
        key, once, tag = params["Key"], params.get("IfNoneMatch") == "*", params.get("IfMatch")
        put = partial(self.bucket.put, key, params["Body"], once, tag)
        fault = self._before("PUT", key, WRITES)
        if fault == "late commit":
            self._commit_late(key, put)
        absent = tag is not None and key not in self.bucket.objects
        stored = not absent and put()
        self._record("PUT", key, fault or ("stored" if stored else "taken"))
        if fault is not None:
            raise RESPONSE_FAULTS[fault]()
        if absent:
            raise make_error(404, "NoSuchKey")
        if not stored:
            raise make_error(412, "PreconditionFailed")
        return {}

    def delete_object(self, **params: Any) -> dict[str, Any]:
        key: str = params["Key"]
        delete = partial(self.bucket.delete, key)
        fault = self._before("DEL", key, DELETES)
        if fault == "late commit":
            self._commit_late(key, delete)
        delete()
        self._record("DEL", key, fault or "gone")
        if fault is not None:
            raise RESPONSE_FAULTS[fault]()
        return {}

    def get_object(self, **params: Any) -> dict[str, Any]:
        key: str = params["Key"]
        fault = self._before("GET", key, self.reads)
        body = self.bucket.objects.get(key)
        self._record("GET", key, fault or ("nothing" if body is None else "there"))
        if body is None:
            raise make_error(404, "NoSuchKey")
        sent = body
        if fault == "torn body":
            sent = body[: self.loop.random.randrange(len(body))] if body else body
        elif fault == "wrong checksum":
            sent = body[:-1] + b"\0"
        checksum = zlib.crc32(body).to_bytes(4, "big")
        return {"Body": make_body(sent, len(body), checksum), "ETag": make_tag(body)}

    def list_objects_v2(self, **query: Any) -> dict[str, Any]:
        fault = self._before("LIST", query["Prefix"], LISTS)
        if fault is not None:
            raise RESPONSE_FAULTS[fault]()
        start = query.get("ContinuationToken") or query.get("StartAfter", "")
        prefix: str = query["Prefix"]
        keys = [k for k in self.bucket.objects if k.startswith(prefix) and k > start]
        part, name = "Contents", "Key"
        if "Delimiter" in query:
            part, name = "CommonPrefixes", "Prefix"
            keys = list({prefix + k[len(prefix) :].partition("/")[0] + "/" for k in keys})
        keys.sort()
        page = keys[: query["MaxKeys"]]
        self._record("LIST", prefix, f"{len(page)} after {start[-46:]!r}")
        listed: dict[str, Any] = {part: [{name: key} for key in page]}
        more = len(keys) > len(page)
        return (
            listed | {"IsTruncated": more} | ({"NextContinuationToken": page[-1]} if more else {})
        )

    def _before(self, verb: str, key: str, kinds: tuple[str, ...]) -> str | None:
        """The fault that comes with the answer; raises the one that comes before it."""
        fault = self.bucket.fault(kinds)
        if fault is not None:
            self._record(verb, key, f"fails: {fault}")
        if fault in REFUSALS:
            raise make_error(*REFUSALS[fault])
        if fault in REQUEST_FAULTS:
            raise REQUEST_FAULTS[fault]()
        return fault

    def _commit_late(self, key: str, commit: Callable[[], object]) -> NoReturn:
        """Carry out the request when nobody waits for it any more."""

        def carry_out() -> None:
            self.bucket.late.add(key)
            self._record("LATE", key, "refused" if commit() is False else "carried out")

        self.loop.elsewhere(self.loop.random.random() * LATE_SECONDS, carry_out)
        raise ReadTimeoutError(endpoint_url=ENDPOINT)

    def _record(self, verb: str, key: str, what: str) -> None:
        if self.loop.trace is not None:
            key = RANDOM_NAME.sub("…", key)
            self.loop.record(f"{verb:4} {key.partition('/conversations/')[2][24:] or key} {what}")


class UncheckedClient(Client):
    """A client that asks for no checksum of what it reads."""

    reads = READS


class Obstore:
    """The part of obstore that S3Store uses, whose errors are sentences."""

    def __init__(self, bucket: Bucket) -> None:
        self.client = UncheckedClient(bucket)

    async def put_async(
        self,
        path: str,
        file: bytes,
        *,
        mode: str | dict[str, str] | None = None,
        use_multipart: bool | None = None,
    ) -> None:
        assert use_multipart is False, "an object is written by one request"
        condition = {"IfNoneMatch": "*"} if mode == "create" else {}
        if isinstance(mode, dict):
            condition = {"IfMatch": mode["e_tag"]}
        put = partial(self.client.put_object, Key=path, Body=file, **condition)
        await self._send(put, is_update="IfMatch" in condition)

    async def get_async(self, path: str) -> "Answer":
        answer = await self._send(lambda: self.client.get_object(Key=path))
        return Answer(answer["Body"], {"e_tag": answer["ETag"]})

    async def delete_async(self, paths: str) -> None:
        await self._send(lambda: self.client.delete_object(Key=paths))

    async def list(
        self, prefix: str, *, offset: str | None = None, chunk_size: int = 50
    ) -> AsyncIterator[Sequence[Any]]:
        query = {"Prefix": prefix, "StartAfter": offset or "", "MaxKeys": chunk_size}
        async for answer in self._walk(query):
            yield [{"path": listed["Key"]} for listed in answer["Contents"]]

    async def list_with_delimiter_async(
        self, prefix: str | None = None
    ) -> Mapping[str, Sequence[str]]:
        query = {"Prefix": prefix or "", "Delimiter": "/", "MaxKeys": KEYS_PER_PAGE}
        pages = [answer["CommonPrefixes"] async for answer in self._walk(query)]
        names = [listed["Prefix"].removesuffix("/") for page in pages for listed in page]
        return {"common_prefixes": names}

    async def _walk(self, query: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Yield the pages of a listing."""
        while True:
            answer = await self._send(partial(self.client.list_objects_v2, **query))
            yield answer
            if not answer["IsTruncated"]:
                return
            query["ContinuationToken"] = answer["NextContinuationToken"]

    async def _send(self, request: Callable[[], Any], *, is_update: bool = False) -> Any:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(None, request)
        except ClientError as error:
            raise make_obstore_error(error, is_update) from error
        except (BotoCoreError, ResponseParserError) as error:
            raise GenericError("HTTP error: error sending request") from error


class Answer:
    """An answer whose body is still to come."""

    def __init__(self, body: StreamingChecksumBody, meta: dict[str, str]) -> None:
        self.body = body
        self.meta = meta

    async def bytes_async(self) -> bytes:
        try:
            return self.body.read()
        except BotoCoreError as error:
            raise GenericError("HTTP error: request or response body error") from error


class Botocore(BotocoreClient):
    """botocore, with the simulated client."""

    def __init__(self, bucket: Bucket) -> None:
        super().__init__("simulated", S3Access(), 1)
        self._client = Client(bucket)

    def client(self) -> "S3Client":
        return cast("S3Client", self._client)


class Access(S3Store):
    """The access of one process to the bucket."""

    def __init__(self, bucket: Bucket, patience: float) -> None:
        super().__init__("simulated", retry_seconds=patience)
        self.bucket_of = bucket
        self._client = Obstore(bucket)
        self._botocore = Botocore(bucket)

    def _place(self, key: str) -> str:
        return RANDOM_NAME.sub(lambda found: self.bucket_of.rename(found[0]), super()._place(key))


def make_body(sent: bytes, length: int, checksum: bytes) -> StreamingChecksumBody:
    """A body as botocore gives it out: it checks the length and the checksum itself."""
    expected = base64.b64encode(checksum).decode()
    return StreamingChecksumBody(BytesIO(sent), length, Crc32Checksum(), expected)


def make_error(status: int, code: str) -> ClientError:
    details = {"Code": code, "Message": "simulated"}
    return ClientError({"Error": details, "ResponseMetadata": {"HTTPStatusCode": status}}, "asked")  # type: ignore[typeddict-item]


def make_obstore_error(error: ClientError, is_update: bool) -> Exception:
    """The error that obstore raises for an answer, with the words of its version 0.12."""
    status: int = error.response["ResponseMetadata"]["HTTPStatusCode"]
    sentence = f"Server returned non-2xx status code: {status} Simulated: <Error><Code>"
    sentence += f"{error.response['Error']['Code']}</Code></Error>"
    kinds: dict[int, type[Exception]] = {
        404: FileNotFoundError,
        409: AlreadyExistsError,
        412: PreconditionError if is_update else AlreadyExistsError,
    }
    return kinds.get(status, GenericError)(sentence)
