"""Clients that ask for much and do not take it."""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.gateway.security.attacks.attack import Target
from tests.gateway.security.raw import build_request

UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}

PING = b"\x89\xfd\0\0\0\0" + b"p" * 125
"""A ping of a socket, whose answer is as long."""

CONVERSATION = "/v1/conversations/{id}"


@dataclass(frozen=True)
class SlowReader:
    """The bytes that a client sends at once, and those that it sends after them while it can."""

    name: str
    path: str
    count: int = 1
    """Requests on one connection, one behind the other."""
    upgrades: bool = False
    more: bytes = b""
    is_known: bool = True
    """Whether it has a key."""

    def build(self, target: Target) -> bytes:
        headers = {"Host": target.host, "Connection": "keep-alive"}
        headers |= {"Authorization": f"Bearer {target.key}"} if self.is_known else {}
        headers |= UPGRADE if self.upgrades else {}
        path = self.path.format(**target._asdict())
        return build_request(path, headers=headers) * self.count


def slow_readers() -> Iterator[SlowReader]:
    yield SlowReader("a page of 1,000 events", f"{CONVERSATION}/events?limit=1000")
    yield SlowReader("50 pages of 1,000 events", f"{CONVERSATION}/events?limit=1000", count=50)
    yield SlowReader("an export", f"{CONVERSATION}/export?format=raw")
    yield SlowReader("a page for people", f"{CONVERSATION}/export?format=html")
    yield SlowReader("a stream", f"{CONVERSATION}/stream")
    yield SlowReader("the present part of a stream", f"{CONVERSATION}/stream?follow=false")
    yield SlowReader("a socket", f"{CONVERSATION}/socket", upgrades=True)
    yield SlowReader(
        "a socket with pings", f"{CONVERSATION}/socket", upgrades=True, more=PING * 500
    )
    yield SlowReader(
        "a socket of nobody with pings",
        f"{CONVERSATION}/socket",
        upgrades=True,
        more=PING * 500,
        is_known=False,
    )
    yield SlowReader("the description of the API", "/openapi.json", count=50, is_known=False)
    yield SlowReader("the page", "/", count=500, is_known=False)
