"""Pages of other sites, whose requests carry the cookie of Anna's session."""

from collections.abc import Iterator, Mapping

from tests.gateway.security.attacks.attack import ANNAS_SESSION, BENS_KEY, JSON, Attack

CONVERSATION = "/v1/conversations/{id}"
NOTE = b'{"title": "Taken over"}'

EVIL = "https://evil.example"


def attacks() -> Iterator[Attack]:
    yield _write("a write without an Origin", {})
    yield _write("a write of a foreign Origin", {"Origin": EVIL})
    yield _write("a write of no Origin", {"Origin": "null"})
    yield _write("an Origin that begins with ours", {"Origin": "http://{host}.evil.example"})
    yield _write("an Origin that ends with ours", {"Origin": "http://evil.example#{host}"})
    yield _write("an Origin of another port", {"Origin": "http://127.0.0.1:1"})
    for site in ("cross-site", "same-site", "nonsense", ""):
        more = {"Sec-Fetch-Site": site, "Origin": "http://{host}"}
        yield _write(f"a write that is {site or 'of no site'}", more)
    for kind in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data"):
        headers = {**ANNAS_SESSION, "Origin": EVIL, "Content-Type": kind}
        path = f"{CONVERSATION}/messages"
        body = b'{"text": "Hello?", "x": "="}'
        yield Attack(f"a form of {kind}", path, "POST", headers, body, statuses=(403,))
    yield Attack(
        "a method that says that it is another one",
        f"{CONVERSATION}/close",
        headers={**ANNAS_SESSION, "X-HTTP-Method-Override": "POST", "X-Method": "POST"},
        statuses=(404, 405),
    )
    yield Attack(
        "a login for a session of the attacker's",
        "/v1/login",
        "POST",
        {**JSON, "Origin": EVIL},
        b'{"code": "none"}',
        statuses=(403,),
    )
    yield Attack(
        "a session beside a wrong key",
        "/v1/me",
        headers={**ANNAS_SESSION, "Authorization": "Bearer pk_x_y"},
        statuses=(401,),
    )
    yield Attack(
        "a preflight of a foreign site",
        CONVERSATION,
        "OPTIONS",
        {"Origin": EVIL, "Access-Control-Request-Method": "PATCH"},
        statuses=(405,),
    )
    yield from _names_of_this_machine()


def _write(name: str, more: Mapping[str, str]) -> Attack:
    # A proxy that says https names another cookie, so that the session is none: 401.
    headers = {**ANNAS_SESSION, **JSON, **more}
    return Attack(name, CONVERSATION, "PATCH", headers, NOTE, statuses=(401, 403))


def _names_of_this_machine() -> Iterator[Attack]:
    """Yield requests to names that a page has bound to this machine's address."""
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil", ""):
        yield Attack(
            f"the host {host or 'of no name'}",
            "/v1/me",
            headers={**BENS_KEY, "Host": host},
            statuses=(400, 421),
        )
    yield Attack(
        "two hosts",
        "/v1/me",
        headers=BENS_KEY,
        replaced=("Host: {host}", "Host: {host}\r\nHost: evil.example"),
        statuses=(400, 421),
    )
    yield Attack(
        "no host at all",
        "/v1/me",
        headers=BENS_KEY,
        replaced=("Host: {host}\r\n", ""),
        statuses=(400, 421),
    )
    forwarded = {
        "Origin": EVIL,
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-Proto": "https",
        "Forwarded": "host=evil.example;proto=https",
    }
    yield _write("a host that was forwarded", forwarded)
