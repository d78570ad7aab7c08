"""The addresses that posts may go to: public ones, and those that the installation allows."""

import asyncio
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import TypeAlias
from urllib.parse import urlsplit

from perdure.errors import Invalid

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

SETTING = "PERDURE_WEBHOOK_NETWORKS"
MAX_URL_CHARS = 2000

NAT64 = IPv6Network("64:ff9b::/96")
"""IPv6 addresses that a gateway translates to the IPv4 address in their last 32 bits (RFC 6052)."""

HTTP_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Networks:
    """Public addresses, and the private ones of these networks."""

    private: tuple[Network, ...] = ()

    def allow(self, address: str) -> bool:
        """Tell whether posts may go to an IP address."""
        try:
            found = unwrap(ip_address(address.partition("%")[0]))
        except ValueError:
            return False
        if any(found.version == it.version and found in it for it in self.private):
            return True
        return found.is_global and not found.is_multicast

    def require(self, host: str, addresses: Iterable[str]) -> list[str]:
        """Return the addresses of a host that posts may go to. Raises Invalid without any."""
        if allowed := [it for it in addresses if self.allow(it)]:
            return allowed
        raise Invalid(
            f"The host {host} has a private address, to which no webhook may go.",
            f"Use a public one, or let an operator add its network to {SETTING}.",
        )


def parse_networks(texts: Iterable[str]) -> Networks:
    """Parse networks such as 10.1.0.0/16. Raises Invalid."""
    try:
        return Networks(tuple(ip_network(text) for text in texts))
    except ValueError as error:
        raise Invalid(f"{SETTING}: {error}.", "Write networks as 10.1.0.0/16.") from error


def unwrap(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address stands for, or the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address in NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    teredo = address.teredo[1] if address.teredo else None
    return address.ipv4_mapped or address.sixtofour or teredo or address


def parse_url(url: str) -> tuple[str, int]:
    """Return the host and the port of an address for posts. Raises Invalid."""
    example = "Use an address such as https://example.org/hooks."
    if len(url) > MAX_URL_CHARS:
        raise Invalid(f"The URL has more than {MAX_URL_CHARS} characters.", example)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if host is None or parts.scheme not in HTTP_PORTS or not url.isprintable() or " " in url:
        raise Invalid(f"{url!r} is no URL of http or https.", example)
    if parts.username is not None or parts.fragment:
        raise Invalid("The URL of a webhook has neither a user nor a fragment.", example)
    return host, port or HTTP_PORTS[parts.scheme]


async def check_url(url: str, networks: Networks) -> None:
    """Check that posts may go to a URL, as its name resolves now. Raises Invalid."""
    host, port = parse_url(url)
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Invalid(f"The host {host} has no address.", "Check its name.") from error
    networks.require(host, [str(it[4][0]) for it in found])
