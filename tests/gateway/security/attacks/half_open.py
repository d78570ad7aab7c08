"""Connections that never send a whole request, by the thousand."""

from collections.abc import Mapping

MB = 1024 * 1024

POST = b"POST /v1/conversations HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"

HALF_OPEN: Mapping[str, bytes] = {
    "nothing": b"",
    "one letter": b"G",
    "half a request line": b"GET /v1/conver",
    "a request line": b"GET /v1/me HTTP/1.1\r\n",
    "headers without end": b"GET /v1/me HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X-A: b\r\n" * 1000,
    "a header without end": b"GET /v1/me HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: " + b"a" * 20_000,
    "the beginning of TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64,
    "a body that does not come": POST + b"Content-Length: 1000\r\n\r\n",
    "half a body": POST + b'Content-Length: 1000\r\n\r\n{"text": "',
    "half a chunk": POST + b"Transfer-Encoding: chunked\r\n\r\n400\r\n" + b" " * 512,
    "half a body of 100 kB": POST + b"Content-Length: 100000\r\n\r\n" + b" " * 50_000,
    "a body that is waited for": POST + b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n",
}
"""What is sent on a connection before nothing more comes."""

LARGE_BODY = b"Authorization: Bearer %b\r\nContent-Length: 8000000\r\n\r\n" + b" " * (4 * MB)
"""Half a body of somebody with a key."""
