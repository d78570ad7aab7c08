"""The connection to a gateway, which repeats what is safe while the gateway does not answer."""

import asyncio
from collections.abc import AsyncIterator, Hashable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from random import uniform
from time import monotonic
from typing import Any, TypeVar, cast

import httpx2
from pydantic import BaseModel, TypeAdapter, ValidationError

from perdure.client.http.address import check_address
from perdure.client.http.problems import parse_problem, to_error
from perdure.errors import PerdureError, Unreachable
from perdure.temporal.names import TRACE_HEADER
from perdure.temporal.sender import find_traceparent

T = TypeVar("T")

CONNECT_TIMEOUT = 5.0
READ_TIMEOUT = 30.0
STREAM_TIMEOUT = 60.0
"""Seconds without a byte after which a stream counts as lost: a gateway sends comments."""

FIRST_PATIENCE = 2.0
"""Seconds for which a gateway that has never answered is asked again."""

PATIENCE = 60.0
"""Seconds for which a gateway that has answered before is asked again."""

BUSY_PATIENCE = 15.0
"""Seconds for which requests are repeated where Temporal or the store do not answer the gateway."""

FIRST_PAUSE, MAX_PAUSE = 0.1, 2.0

NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
"""Failures before anything of the request was sent."""

Query = Mapping[str, str | int | float | bool | None]


class Connection:
    """Requests to a gateway with one key, which is in no address, text or log of this object."""

    def __init__(self, url: str, key: str, plain_http: bool = False) -> None:
        self.url = check_address(url, plain_http)
        self._has_answered = False
        headers = {"Authorization": f"Bearer {key}", "User-Agent": f"perdure/{_version()}"}
        timeout = httpx2.Timeout(READ_TIMEOUT, connect=CONNECT_TIMEOUT)
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
        self._http = httpx2.AsyncClient(
            base_url=self.url,
            headers=headers,
            timeout=timeout,
            limits=limits,
            event_hooks={"request": [_name_sender]},
        )

    def __repr__(self) -> str:
        return f"Connection({self.url!r})"

    @property
    def patience(self) -> float:
        """Seconds for which a gateway that does not answer is asked again."""
        return PATIENCE if self._has_answered else FIRST_PATIENCE

    async def close(self) -> None:
        await self._http.aclose()

    async def get(self, path: str, kind: type[T], **query: Any) -> T:
        """Get a document. Raises what the library raises for the same reason."""
        return _parse(await self.request("GET", path, query=query), kind)

    async def post(
        self,
        path: str,
        kind: type[T],
        body: BaseModel | None = None,
        *,
        repeatable: bool = False,
        max_wait: float = 0.0,
        **query: Any,
    ) -> T:
        """Post a request, and return the answer, for which the gateway may wait `max_wait` seconds.

        A request is `repeatable` if a second one of the same content changes nothing more. Raises
        what the library raises, and Unreachable where an answer was lost.
        """
        content = None if body is None else body.model_dump(mode="json", exclude_unset=True)
        response = await self.request(
            "POST", path, query=query, body=content, repeatable=repeatable, max_wait=max_wait
        )
        return _parse(response, kind)

    async def patch(
        self, path: str, kind: type[T], body: BaseModel, max_wait: float, **query: Any
    ) -> T:
        """Change a document, and return it as it is then; raises as `post`."""
        content = body.model_dump(mode="json", exclude_none=True)
        response = await self.request(
            "PATCH", path, query=query, body=content, repeatable=False, max_wait=max_wait
        )
        return _parse(response, kind)

    async def put(self, path: str, body: BaseModel, **query: Any) -> None:
        await self.request("PUT", path, query=query, body=body.model_dump(mode="json"))

    async def delete(self, path: str, **query: Any) -> None:
        await self.request("DELETE", path, query=query)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Any = None,
        repeatable: bool = True,
        max_wait: float = 0.0,
    ) -> httpx2.Response:
        """Send a request, again where that is safe, and return the answer of success."""
        params = _drop_unset(query)
        timeout = httpx2.Timeout(READ_TIMEOUT + max_wait, connect=CONNECT_TIMEOUT)
        began = monotonic()
        for pause in _pauses():
            try:
                response = await self._http.request(
                    method, path, params=params, json=body, timeout=timeout
                )
            except NOT_SENT as error:
                failure: PerdureError = self._unreachable(error)
                patience = self.patience
            except httpx2.TransportError as error:
                failure, patience = self._unreachable(error), self.patience
                if not repeatable:
                    raise _lost(self.url) from error
            else:
                self._has_answered = True
                if response.is_success:
                    return response
                failure = self._describe(response)
                patience, pause = _find_patience(response, repeatable, pause)
            if monotonic() - began + pause > patience:
                raise failure
            await asyncio.sleep(pause)
        raise AssertionError("the pauses never end")

    @asynccontextmanager
    async def stream(
        self, path: str, query: Query, last_event_id: str | None = None
    ) -> AsyncIterator[httpx2.EventSource]:
        """Open a stream of server-sent events. Raises httpx2.TransportError, and PerdureError."""
        headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
        timeout = httpx2.Timeout(STREAM_TIMEOUT, connect=CONNECT_TIMEOUT)
        async with self._http.sse(
            path,
            params=_drop_unset(query),
            headers=headers,
            timeout=timeout,
            max_event_size=None,
        ) as source:
            self._has_answered = True
            if not source.response.is_success:
                await source.response.aread()
                raise self._describe(source.response)
            yield source

    def explain(self, error: Exception) -> PerdureError:
        """Return an error of a stream as one of the library's."""
        return error if isinstance(error, PerdureError) else self._unreachable(error)

    def _unreachable(self, error: Exception) -> Unreachable:
        if isinstance(error, httpx2.ReadTimeout):
            unreachable = Unreachable(
                f"The gateway {self.url} does not answer in time.",
                "Its store or Temporal may not answer it: ask its /ready, or read its log.",
            )
        else:
            reason = str(error) or type(error).__name__
            unreachable = Unreachable(
                f"The gateway {self.url} does not answer: {reason}.",
                "Check its address, and whether it runs: `perdure gateway`, or `perdure dev`.",
            )
        unreachable.__cause__ = error
        return unreachable

    def _describe(self, response: httpx2.Response) -> PerdureError:
        """Build the error of an answer."""
        if problem := parse_problem(response.content):
            return to_error(problem)
        if response.is_redirect:
            place = response.headers.get("Location", "elsewhere")
            return Unreachable(f"The gateway is not at {self.url}, but at {place}.")
        status = f"{response.status_code} {response.reason_phrase}".strip()
        return Unreachable(
            f"{self.url} does not answer as a gateway of perdure does: {status}.",
            "Check its address, and what stands between here and there.",
        )


def _find_patience(
    response: httpx2.Response, repeatable: bool, pause: float
) -> tuple[float, float]:
    """Return for how long a request that was refused is repeated, and the pause before that."""
    problem = parse_problem(response.content)
    asked = _retry_after(response)
    if response.status_code == httpx2.codes.TOO_MANY_REQUESTS:  # nothing was done
        return PATIENCE, asked if asked is not None else pause
    if not repeatable:
        return 0.0, pause
    if problem is None and response.status_code in (502, 503, 504):  # a proxy without its gateway
        return PATIENCE, asked if asked is not None else pause
    if response.status_code == httpx2.codes.SERVICE_UNAVAILABLE and asked is not None:
        return BUSY_PATIENCE, asked
    return 0.0, pause


def _retry_after(response: httpx2.Response) -> float | None:
    """Return the seconds of `Retry-After`; a date, which gateways do not send, is as none."""
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else None


def _lost(url: str) -> Unreachable:
    return Unreachable(
        f"The gateway {url} was lost before its answer came: the request may have been done.",
        "Look at the conversation before you repeat it: `perdure status`.",
    )


def _pauses() -> Iterator[float]:
    """Yield ever longer pauses between attempts, in seconds, of random length."""
    pause = FIRST_PAUSE
    while True:
        yield uniform(pause / 2, pause)
        pause = min(MAX_PAUSE, pause * 2)


def _drop_unset(query: Query | None) -> dict[str, Any]:
    return {name: value for name, value in (query or {}).items() if value is not None}


async def _name_sender(request: httpx2.Request) -> None:
    """Say from which span a request is sent, as W3C Trace Context wants it."""
    if (traceparent := find_traceparent()) is not None:
        request.headers[TRACE_HEADER] = traceparent


def _parse(response: httpx2.Response, kind: type[T]) -> T:
    """Parse an answer, whatever fields a newer gateway has added. Raises Unreachable."""
    if kind is bytes:
        return response.content  # type: ignore[return-value]
    try:
        adapter = _adapter(cast("Hashable", kind))
        parsed: T = adapter.validate_json(response.content or b"null", extra="ignore")
    except ValidationError as error:
        raise Unreachable(
            f"The gateway answers what this version of perdure does not understand: {error}",
            "Use the version of perdure that the gateway has.",
        ) from error
    return parsed


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _version() -> str:
    try:
        return version("perdure")
    except PackageNotFoundError:
        return "0"
