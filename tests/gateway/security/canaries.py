"""Secrets that go through a gateway, all that it answered, and a search for them."""

import asyncio
import contextlib
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from perdure.gateway import __main__ as gateway_process
from reliability.following.gateways import serve_gateway
from tests.secret_leaks import encoded_forms


def find_canaries(secrets: Mapping[str, str], text: str) -> set[str]:
    """Return the names of the secrets that a text has, in any usual form."""
    data = text.encode()
    return {
        name for name, value in secrets.items() if any(form in data for form in _list_forms(value))
    }


@cache
def _list_forms(value: str) -> frozenset[bytes]:
    return frozenset(form for form in encoded_forms(value) if len(form) >= 8)


@dataclass
class Witness:
    """The requests that had secrets, and the answers to them."""

    secrets: dict[str, str] = field(default_factory=dict)
    leaks: list[str] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)

    def know(self, name: str, secret: str) -> str:
        """Add a secret; return it."""
        self.secrets[name] = secret
        return secret

    def note(self, what: str, text: str, shows: Collection[str] = ()) -> None:
        """Search an answer; it may show what is documented to be its content."""
        found = find_canaries(self.secrets, text) - set(shows)
        self.leaks += [f"{what} shows {name}" for name in sorted(found)]

    async def ask(
        self,
        client: httpx.AsyncClient,
        method: str,
        path: str,
        *,
        shows: Collection[str] = (),
        **more: Any,
    ) -> httpx.Response:
        """Send a request, and search its answer."""
        answer = await client.request(method, path, **more)
        self.statuses.append(answer.status_code)
        self.note(
            f"{method} {path}: {answer.status_code}", f"{answer.headers} {answer.text}", shows
        )
        return answer


class Asking:
    """Clients of a gateway process."""

    def __init__(self, url: str, witness: Witness) -> None:
        self.url = url
        self.witness = witness
        self._client = httpx.AsyncClient(timeout=60)

    async def close(self) -> None:
        await self._client.aclose()

    async def ask(self, method: str, path: str, secret: str = "", **more: Any) -> httpx.Response:
        headers = {**more.pop("headers", {})}
        if secret:
            headers["Authorization"] = f"Bearer {secret}"
        address = f"{self.url}{path}"
        self._client.cookies.clear()
        return await self.witness.ask(self._client, method, address, headers=headers, **more)

    async def open_socket(self, path: str, headers: dict[str, str]) -> None:
        """Open a socket, read what comes first, and leave."""
        address = f"{self.url.replace('http', 'ws', 1)}{path}"
        with contextlib.suppress(WebSocketException, TimeoutError):
            async with connect(address, additional_headers=headers) as socket:
                async with asyncio.timeout(3):
                    for _ in range(3):
                        self.witness.note(f"socket {path[:60]}", str(await socket.recv()))


def serve_talkative_gateway(env: Mapping[str, str], port: int, log: Path) -> None:
    """Be a gateway that logs all that any library has to say."""

    def configure(_name: str, _format: str) -> None:
        logging.basicConfig(level=logging.DEBUG, format="%(name)s %(levelname)s %(message)s")

    setattr(gateway_process, "configure_logs", configure)  # noqa: B010 - mypy's wish
    serve_gateway(env, port, log)
