"""The address of a gateway."""

from ipaddress import ip_address
from urllib.parse import quote, urlsplit

from perdure.errors import Invalid
from perdure.secrets.vault import check_name
from perdure.storage.keys import check_user_id

HINT = "Write it as https://HOST or https://HOST:PORT."


def check_address(url: str, plain_http: bool = False) -> str:
    """Return the address without a slash at its end. Raises Invalid.

    Plain HTTP shows the key to whoever listens: it is refused but for this machine, or with
    `plain_http`.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise Invalid(f"{url!r} is no address of a gateway: {error}.", HINT) from error
    if parts.username or parts.password or parts.query or parts.fragment:
        raise Invalid("The address of a gateway has no key, query or fragment in it.", HINT)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Invalid(f"{url!r} is no address of a gateway.", HINT)
    if parts.scheme == "http" and not (plain_http or _is_loopback(parts.hostname)):
        raise Invalid(
            f"A key would be sent to {parts.hostname} in plain text.",
            "Use https. A program may allow it: `HttpClient(url, key, plain_http=True)`.",
        )
    return url.rstrip("/")


def quote_segment(text: str) -> str:
    """Quote a text so that it is one segment of a path, whatever it has in it."""
    quoted = quote(text, safe="")
    return quoted.replace(".", "%2E") if quoted in (".", "..") else quoted


def grant_path(path: str, user_id: str) -> str:
    """Return the path of the grant for a user. Raises Invalid for what is no user id."""
    try:
        return f"{path}/grants/{quote_segment(check_user_id(user_id))}"
    except ValueError as error:
        raise Invalid(str(error)) from error


def secret_path(name: str) -> str:
    """Return the path of a secret. Raises Invalid for what is no name of one."""
    return f"/v1/secrets/{check_name(name)}"


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:  # a name
        return False
