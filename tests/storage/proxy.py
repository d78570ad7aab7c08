"""A network that fails as told: an HTTP proxy before an S3 server.

It hands on the `Host` header as it came, so that signatures stay valid.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit


class Trouble(Enum):
    THROTTLED = "503 SlowDown instead of asking the server"
    TOO_MANY = "429 TooManyRequests instead of asking the server"
    CONFLICT = "409 ConditionalRequestConflict instead of asking the server"
    NOT_IMPLEMENTED = "501 NotImplemented instead of asking the server"
    CUT = "the connection ends before the server is asked"
    UNANSWERED = "the connection ends after the server has done it"
    TORN = "the connection ends in the middle of the answer"


ANSWERS = {
    Trouble.THROTTLED: (503, "SlowDown"),
    Trouble.TOO_MANY: (429, "TooManyRequests"),
    Trouble.CONFLICT: (409, "ConditionalRequestConflict"),
    Trouble.NOT_IMPLEMENTED: (501, "NotImplemented"),
}


class Proxy(ThreadingHTTPServer):
    """`troubles` befall the next requests, one each; `asked` counts all requests."""

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.target = urlsplit(target).netloc
        self.troubles: deque[Trouble] = deque()
        self.asked = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def proxy_to(target: str) -> Iterator[Proxy]:
    with Proxy(target) as proxy:
        thread = Thread(target=proxy.serve_forever, args=(0.01,))
        thread.start()
        yield proxy
        proxy.shutdown()
        thread.join()


class Handler(BaseHTTPRequestHandler):
    server: Proxy
    protocol_version = "HTTP/1.1"  # the older one does not say 100 Continue

    def do_GET(self) -> None:
        self._serve()

    def do_PUT(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked += 1
        self.close_connection = True
        trouble = self.server.troubles.popleft() if self.server.troubles else None
        if trouble in ANSWERS:
            self._refuse(*ANSWERS[trouble])
        elif trouble is not Trouble.CUT:
            status, headers, answer = self._forward(body)
            if trouble is not Trouble.UNANSWERED:
                cut = len(answer) // 2 if trouble is Trouble.TORN else len(answer)
                self._answer(status, headers, answer[:cut])

    def _forward(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = HTTPConnection(self.server.target, timeout=30)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in ("expect", "connection"):
                connection.putheader(name, value)
        connection.endheaders(body)
        response: HTTPResponse = connection.getresponse()
        answer = response.read()
        connection.close()
        return response.status, response.getheaders(), answer

    def _refuse(self, status: int, code: str) -> None:
        said = f"<Error><Code>{code}</Code><Message>in trouble</Message></Error>".encode()
        self._answer(status, [("Content-Length", str(len(said)))], said)

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        self.send_header("Connection", "close")
        for name, value in headers:
            if name.lower() not in ("connection", "transfer-encoding"):
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
