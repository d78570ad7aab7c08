"""Connections to servers of models, by aiohttp: a third of the CPU that httpx takes."""

import asyncio
import json
import os
import re
import ssl
import urllib.request
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import certifi

from perdure.models.direct.errors import BadStatus
from perdure.models.model import ModelRefused
from perdure.models.own_server import is_address
from perdure.models.stream_accumulator import parse_events

CONNECT_SECONDS = 30.0
"""Seconds to reach a server; the answer itself has the timeout of its model."""

REST_SECONDS = 0.05
"""Seconds to wait for the end of a body after its last event."""

TLS_SETTINGS = re.compile(r" ssl:.*? \[")
"""The TLS settings that aiohttp's messages have between the host and the reason."""


class Connections:
    """The connections of one event loop, kept open for the next requests."""

    def __init__(
        self, variables: Mapping[str, str], connect_seconds: float = CONNECT_SECONDS
    ) -> None:
        tracing = aiohttp.TraceConfig()
        tracing.on_connection_reuseconn.append(_mark_reuse)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds)
        self._pool = _open_session(timeout, [tracing], force_close=False)
        self._fresh = _open_session(timeout, [], force_close=True)
        self._variables = variables
        self._options: dict[str, dict[str, Any]] = {}

    async def events(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        is_last: Callable[[Any], bool] = lambda _: False,
    ) -> AsyncGenerator[Any]:
        """Post a body and yield the events of the answer, one if it is not streamed.

        A stream ends with `[DONE]`, or with the event that `is_last` recognises. Closing the
        generator before the end closes the connection. Raises BadStatus, ConnectionError, and
        ValueError for what is no JSON.
        """
        try:
            async with self._post(url, body, headers) as response:
                if response.status >= 400:
                    text = (await response.read()).decode(errors="replace")
                    raise BadStatus(response.status, text, response.headers)
                if "json" in response.content_type:
                    yield json.loads(await response.read())
                    return
                async with aclosing(parse_events(response.content.iter_any())) as events:
                    async for event in events:
                        yield event
                        if is_last(event):
                            break
                await _read_rest(response)
        except aiohttp.ClientError as error:
            text = TLS_SETTINGS.sub(" [", str(error)) or type(error).__name__
            raise ConnectionError(text) from error

    @asynccontextmanager
    async def _post(
        self, url: str, body: bytes, headers: Mapping[str, str]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Post a body; leaving the context before the response's end closes the connection.

        A request is sent once more, on a fresh connection, if nothing was received on one that was
        kept open: the server had closed it meanwhile.
        """
        options = {"data": body, "headers": headers, **await self._find_options(url)}
        connection = SimpleNamespace(reused=False)
        try:
            response = await self._pool.post(url, trace_request_ctx=connection, **options)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            if not connection.reused:
                raise
            response = await self._fresh.post(url, **options)
        try:
            yield response
        finally:
            response.close()

    async def close(self) -> None:
        await self._pool.close()
        await self._fresh.close()

    async def _find_options(self, url: str) -> dict[str, Any]:
        if url not in self._options:
            tls = url.startswith("https:")
            verification = await asyncio.to_thread(read_tls, self._variables) if tls else True
            self._options[url] = {"proxy": find_proxy(url), "ssl": verification}
        return self._options[url]


_HELD: dict[asyncio.AbstractEventLoop, tuple[Connections, AsyncGenerator[None]]] = {}


async def open_connections() -> Connections:
    """Return the connections of the running event loop, which closes them at its end.

    At its end, an event loop closes the async generators that have begun in it.
    """
    loop = asyncio.get_running_loop()
    if loop not in _HELD:
        connections = Connections(os.environ)
        holder = _close_at_end(loop, connections)
        _HELD[loop] = connections, holder
        await anext(holder)
    return _HELD[loop][0]


async def _close_at_end(
    loop: asyncio.AbstractEventLoop, connections: Connections
) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        del _HELD[loop]
        await connections.close()


async def _read_rest(response: aiohttp.ClientResponse) -> None:
    """Read the end of a body whose last event has come: then its connection is kept open."""
    with suppress(TimeoutError, aiohttp.ClientError):
        async with asyncio.timeout(REST_SECONDS):
            await response.content.read()


def find_proxy(url: str) -> str | None:
    """Find the proxy for an address: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY count."""
    address = urlsplit(url)
    if urllib.request.proxy_bypass(address.hostname or ""):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    if not proxy:
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not is_address(proxy):
        kind = proxy.partition(":")[0]
        detail = f"The environment of the worker has a proxy of the kind {kind}://"
        raise ModelRefused("bad_request", f"{detail}: set one that begins with http://.")
    return proxy


def read_tls(variables: Mapping[str, str]) -> ssl.SSLContext | bool:
    """Read how servers are verified: by SSL_VERIFY, a file of certificates, or certifi's.

    SSL_VERIFY is such a file, or false for no verification; SSL_CERT_FILE and REQUESTS_CA_BUNDLE
    are files of certificates.
    """
    verify = variables.get("SSL_VERIFY", "")
    if verify.strip().lower() == "false":
        return False
    files = (verify, variables.get("SSL_CERT_FILE", ""), variables.get("REQUESTS_CA_BUNDLE", ""))
    file = next((name for name in files if Path(name).is_file()), certifi.where())
    try:
        return ssl.create_default_context(cafile=file)
    except OSError as error:
        detail = f"The certificates in {file} cannot be read ({error})"
        raise ModelRefused("bad_request", f"{detail}: correct SSL_CERT_FILE.") from error


def _open_session(
    timeout: aiohttp.ClientTimeout, tracing: list[aiohttp.TraceConfig], *, force_close: bool
) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(limit=0, force_close=force_close)
    cookies = aiohttp.DummyCookieJar()
    return aiohttp.ClientSession(
        connector=connector, cookie_jar=cookies, timeout=timeout, trace_configs=tracing
    )


async def _mark_reuse(_: Any, context: SimpleNamespace, __: Any) -> None:
    context.trace_request_ctx.reused = True
