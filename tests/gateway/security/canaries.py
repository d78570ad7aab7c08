"""Secrets that go through a gateway, all that it answered, and a search for them."""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx

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


def serve_talkative_gateway(env: Mapping[str, str], port: int, log: Path) -> None:
    """Be a gateway that logs all that any library has to say."""

    def configure(_: str) -> None:
        logging.basicConfig(level=logging.DEBUG, format="%(name)s %(levelname)s %(message)s")

    setattr(gateway_process, "configure_logs", configure)  # noqa: B010 - mypy's wish
    serve_gateway(env, port, log)
