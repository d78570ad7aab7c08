"""Requests that two programs in a row might read differently, or that are too large to read."""

from collections.abc import Iterator, Mapping

from tests.gateway.security.attacks.attack import BENS_KEY, JSON, Attack

MB = 1024 * 1024
START = b'{"text": "Hello?"}'

SMUGGLED = b"0\r\n\r\nDELETE /v1/conversations/x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
"""The end of a body in chunks, and a request behind it."""

CODINGS = ("xchunked", "chunked, identity", "identity", "gzip, chunked", "\x0bchunked", "CHUNKED ;")

BODIES = {
    "JSON 100,000 levels deep": b"[" * 100_000,
    "objects 100,000 levels deep": b'{"a":' * 100_000,
    "a number of 100,000 digits": b'{"text": ' + b"9" * 100_000 + b"}",
    "a number that is none": b'{"text": NaN}',
    "a number that is infinite": b'{"text": 1e999}',
    "text that is no UTF-8": b'{"text": "\xff\xfe"}',
    "half a surrogate pair": b'{"text": "\\ud800"}',
    "no JSON": b"<xml/>",
    "two values": b'{"text": "a"}{"text": "b"}',
    "a line end in an id": b'{"text": "x", "conversation_id": "a\\r\\nSet-Cookie: x=y"}',
    "fields that nobody knows": b'{"text": "x", "__class__": "os", "user_id": "anna"}',
    "a list": b'["text"]',
}

HEAD = b"GET /v1/me HTTP/1.1\r\nHost: 127.0.0.1\r\n"

RAW = {
    "a bare newline": b"GET /v1/me HTTP/1.1\nHost: 127.0.0.1\nConnection: close\n\n",
    "HTTP/0.9": b"GET /v1/me\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/9": b"GET /v1/me HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64 + b"\r\n\r\n",
    "spaces alone": b" " * 1000 + b"\r\n\r\n",
}


def attacks() -> Iterator[Attack]:
    both = {"Content-Length": "6", "Transfer-Encoding": "chunked"}
    yield _post("a length and chunks", SMUGGLED, both, may_close=True)
    for coding in CODINGS:
        yield _post(
            f"the coding {coding!r}", SMUGGLED, {"Transfer-Encoding": coding}, may_close=True
        )
    for length in ("-1", "0x10", "1e1", "9" * 30, "18, 18x", "+18"):
        yield _post(f"the length {length}", START, {"Content-Length": length}, may_close=True)
    yield Attack(
        "two lengths",
        "/v1/conversations",
        "POST",
        {**JSON, **BENS_KEY, "Content-Length": "5"},
        START,
        replaced=("Content-Length: 5", "Content-Length: 5\r\nContent-Length: 18"),
        statuses=(400,),
    )
    for name, header in (("X A", "a space"), ("X-A", "a\0b"), ("X-B", "1\r\n 2"), ("", "no name")):
        yield Attack(f"the header {name}: {header!r}", "/v1/me", headers={name: header})
    for method in ("TRACE", "CONNECT", "PROPFIND", "DEBUG", "G\u00cbT", "GET\t"):
        yield Attack(f"the method {method!r}", "/v1/me", method, BENS_KEY)
    yield Attack("all resources", "*", "OPTIONS", BENS_KEY)
    yield Attack("another protocol", "/v1/me", headers={"Upgrade": "h2c", "Connection": "Upgrade"})
    for name, body in BODIES.items():
        yield _post(name, body, {}, (422,))
    yield _post("a body that is packed", b"\x1f\x8b\x08" + b"\0" * 99, {"Content-Encoding": "gzip"})
    for name, raw in RAW.items():
        yield Attack(name, parts=(raw,), may_close=True)
    yield from _large()


def _large() -> Iterator[Attack]:
    """Yield requests that are too large to be read."""
    yield Attack("a header of 10 MB", parts=(HEAD + b"X: ", *[b"a" * MB] * 10), may_close=True)
    yield Attack("headers of 10 MB", parts=(HEAD, *[b"X-A: b\r\n" * 131072] * 10), may_close=True)
    yield Attack("an address of 10 MB", parts=(b"GET /v1/me?", *[b"a" * MB] * 10), may_close=True)
    stated = {"Content-Length": str(10 * MB)}
    for name, path in (("a body of 10 MB", "/v1/conversations"), ("a login of 10 MB", "/v1/login")):
        yield Attack(
            name,
            path,
            "POST",
            {**JSON, **BENS_KEY, **stated},
            parts=(b" " * MB,) * 10,
            statuses=(413,),
            may_close=True,
        )
    yield Attack(
        "a body of 10 MB in chunks",
        "/v1/conversations",
        "POST",
        {**JSON, **BENS_KEY, "Transfer-Encoding": "chunked"},
        parts=(f"{MB:x}\r\n".encode() + b" " * MB + b"\r\n",) * 10,
        statuses=(413,),
        may_close=True,
    )
    many = b'{"accept": true, "calls": [' + b",".join([b'"x"'] * 200_000) + b"]}"
    path = "/v1/conversations/{id}/respond"
    yield Attack("a list of 200,000", path, "POST", {**JSON, **BENS_KEY}, many)
    ranges = "bytes=" + ",".join(f"{nth}-{nth + 1}" for nth in range(2000))
    path = "/v1/conversations/{id}/export"
    yield Attack("2,000 ranges", path, headers={**BENS_KEY, "Range": ranges})


def _post(
    name: str,
    body: bytes,
    headers: Mapping[str, str],
    statuses: tuple[int, ...] = (400, 413, 422, 501),
    *,
    may_close: bool = False,
) -> Attack:
    return Attack(
        name,
        "/v1/conversations",
        "POST",
        {**JSON, **BENS_KEY, **headers},
        body,
        statuses=statuses,
        may_close=may_close,
    )
