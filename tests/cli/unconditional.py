"""A small S3 server that ignores `If-None-Match`, as old ones do: every PUT overwrites."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit


class UnconditionalServer(ThreadingHTTPServer):
    """The server; `objects` are by bucket and key."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects: dict[str, bytes] = {}

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def unconditional_server() -> Iterator[UnconditionalServer]:
    with UnconditionalServer() as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class Handler(BaseHTTPRequestHandler):
    server: UnconditionalServer

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if "aws-chunked" in self.headers.get("Content-Encoding", ""):
            body = b"".join(_chunks(body))
        self.server.objects[self._path()] = body
        self._answer(200, b"")

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        if "list-type" in query:
            start = f"{self._path().rstrip('/')}/"
            keys = sorted(key for key in self.server.objects if key.startswith(start))
            prefix = query.get("prefix", [""])[0]
            relative_keys = [key.removeprefix(start) for key in keys]
            self._answer(200, _listing([key for key in relative_keys if key.startswith(prefix)]))
        elif (body := self.server.objects.get(self._path())) is not None:
            self._answer(200, body)
        else:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def _path(self) -> str:
        return unquote(urlsplit(self.path).path)

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _chunks(body: bytes) -> Iterator[bytes]:
    """Split a body in the `aws-chunked` coding: a size in hex, the bytes, and again."""
    while body:
        head, _, rest = body.partition(b"\r\n")
        size = int(head.partition(b";")[0], 16)
        if size == 0:
            return
        yield rest[:size]
        body = rest[size + 2 :]


def _listing(keys: list[str]) -> bytes:
    contents = "".join(f"<Contents><Key>{key}</Key><Size>1</Size></Contents>" for key in keys)
    return (
        f"<ListBucketResult><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>".encode()
    )
