"""One post to an address that a user has named, which may be anybody's."""

import asyncio
import email.utils
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urljoin

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from perdure.errors import Invalid
from perdure.webhooks.networks import Networks, parse_url

MAX_REDIRECTS = 3
REDIRECTS = (307, 308)
"""Statuses after which the same post goes to another address; after others it would be a GET."""

CONNECT_TIMEOUT = 5.0
MAX_RETRY_AFTER = 86_400.0


class Unanswered(Exception):
    """The receiver was not reached, or did not answer in time; the text says what happened."""


@dataclass(frozen=True)
class Answer:
    """The status of an answer, and the seconds after which the receiver wants the next post."""

    status: int
    retry_after: float | None = None

    @property
    def is_taken(self) -> bool:
        return 200 <= self.status < 300


class CheckedResolver(AbstractResolver):
    """A resolver of names to addresses that posts may go to.

    aiohttp connects to what it returns: a name that resolves otherwise a moment later changes
    nothing.
    """

    def __init__(self, networks: Networks) -> None:
        self._networks = networks
        self._names = aiohttp.ThreadedResolver()

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        found = await self._names.resolve(host, port, family)  # type: ignore[arg-type]
        allowed = self._networks.require(host, [it["host"] for it in found])
        return [it for it in found if it["host"] in allowed]

    async def close(self) -> None:
        await self._names.close()


async def post(
    url: str, body: bytes, headers: Mapping[str, str], networks: Networks, max_wait: float
) -> Answer:
    """Post a body, follow redirects, and return the answer, whose body is not read.

    Raises Invalid for an address that posts may not go to, and Unanswered.
    """
    connector = aiohttp.TCPConnector(resolver=CheckedResolver(networks), force_close=True)
    limits = aiohttp.ClientTimeout(total=max_wait, sock_connect=CONNECT_TIMEOUT)
    try:
        async with (
            asyncio.timeout(max_wait),
            aiohttp.ClientSession(
                connector=connector, timeout=limits, cookie_jar=aiohttp.DummyCookieJar()
            ) as session,
        ):
            return await _follow(session, url, body, headers, networks)
    except TimeoutError as error:
        raise Unanswered(f"the receiver did not answer within {max_wait:g} s") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        kind = type(error).__name__
        raise Unanswered(f"the receiver was not reached ({kind}: {error})") from error


async def _follow(
    session: aiohttp.ClientSession,
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    networks: Networks,
) -> Answer:
    for _ in range(MAX_REDIRECTS + 1):
        address = parse_address(url, networks)
        async with session.post(
            address, data=body, headers=headers, allow_redirects=False
        ) as response:
            location = response.headers.get("Location")
            if response.status not in REDIRECTS or location is None:
                return Answer(response.status, parse_retry_after(response.headers))
        target = urljoin(url, location)
        if url.startswith("https:") and not target.startswith("https:"):
            raise Invalid("The receiver redirects to an address without TLS.")
        url = target
    raise Unanswered(f"the receiver redirects more than {MAX_REDIRECTS} times")


def parse_address(url: str, networks: Networks) -> URL:
    """Parse a URL, and check a host that is an IP address, which no resolver sees.

    The host is the one that aiohttp connects to: digits of other scripts are digits, too. Raises
    Invalid.
    """
    parse_url(url)
    address = URL(url)
    host = address.raw_host or ""
    if ":" in host or host.replace(".", "").isdigit():
        networks.require(host, [host])
    return address


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Parse the header Retry-After, in seconds or a date; None for what is neither."""
    text = headers.get("Retry-After", "").strip()
    if text.isdecimal() and text.isascii():
        return min(float(text[:9]), MAX_RETRY_AFTER)
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    wait = (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return min(max(wait, 0.0), MAX_RETRY_AFTER)
