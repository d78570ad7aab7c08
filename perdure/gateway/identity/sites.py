"""The site of a gateway: its address in a browser, and whose pages may send requests.

A browser sends the cookie of a session along with requests that pages of other sites make. Whether
a page is ours is told by headers that no page can set: Sec-Fetch-Site and Origin.
"""

from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")

SECURE_COOKIE = "__Host-perdure"
"""The cookie of https: a browser takes this name only with Secure, Path=/ and without a domain."""

LOCAL_COOKIE = "perdure-session"
"""The cookie of plain http, which `__Host-` forbids; the port behind it tells gateways of a machine
apart, for cookies do not."""


@dataclass(frozen=True)
class Site:
    """The site of a gateway.

    `url` is its public address, if it is set. A gateway that is `local` serves on a loopback
    address: requests to another name come from a page whose name was bound to it (DNS rebinding).
    """

    url: str | None = None
    is_local: bool = False

    def knows_host(self, host: str) -> bool:
        """Tell whether the Host of a request is a name of ours."""
        if self.url is not None and host.lower() == urlsplit(self.url).netloc.lower():
            return True
        if self.is_local:
            return _strip_port(host.lower()) in LOOPBACK_NAMES
        return self.url is None

    def is_own_page(self, connection: HTTPConnection) -> bool:
        """Tell whether a page of ours has made the request, or a person by hand."""
        site = connection.headers.get("sec-fetch-site")
        if site is not None:
            return site in ("same-origin", "none")
        return connection.headers.get("origin") == self.origin_of(connection)

    def has_own_origin(self, connection: HTTPConnection) -> bool:
        """Tell whether the Origin is ours: every browser sends it with the request of a socket."""
        return connection.headers.get("origin") == self.origin_of(connection)

    def origin_of(self, connection: HTTPConnection) -> str:
        """Return our own origin as a browser sees it."""
        if self.url is not None and not self._is_loopback_request(connection):
            parts = urlsplit(self.url)
            return f"{parts.scheme}://{parts.netloc}".lower()
        scheme = {"ws": "http", "wss": "https"}.get(connection.url.scheme, connection.url.scheme)
        return f"{scheme}://{connection.headers.get('host', '')}".lower()

    def cookie_name(self, connection: HTTPConnection) -> str:
        if self.is_secure(connection):
            return SECURE_COOKIE
        port = connection.url.port
        return f"{LOCAL_COOKIE}-{port}" if port else LOCAL_COOKIE

    def is_secure(self, connection: HTTPConnection) -> bool:
        return self.origin_of(connection).startswith("https://")

    def _is_loopback_request(self, connection: HTTPConnection) -> bool:
        host = _strip_port(connection.headers.get("host", "").lower())
        return self.is_local and host in LOOPBACK_NAMES


def _strip_port(host: str) -> str:
    name, separator, port = host.rpartition(":")
    return name if separator and port.isdecimal() else host
