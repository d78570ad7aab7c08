"""A git server on this machine: `git http-backend` behind HTTP, with a token for private ones."""

import base64
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

TOKEN = "glpat-canary-of-the-repository-0123"

AUTHOR = {
    name: value
    for side in ("AUTHOR", "COMMITTER")
    for name, value in ((f"GIT_{side}_NAME", "Test"), (f"GIT_{side}_EMAIL", "t@example.org"))
}


@dataclass
class GitServer:
    """A server of the bare repositories in `folder`; those in `private/` want the token.

    `requests` are the paths that were asked for. While `delay` is set, each answer takes so many
    seconds; while `failures` are left, each is the status of an answer.
    """

    folder: Path
    url: str = ""
    requests: list[str] = field(default_factory=list)
    delay: float = 0.0
    failures: list[int] = field(default_factory=list)

    def create(self, name: str, files: dict[str, str] | None = None, branch: str = "main") -> str:
        """Create a repository with one commit of these files; return its URL."""
        bare = self.folder / f"{name}.git"
        bare.mkdir(parents=True)
        self._git(bare, "init", "--quiet", "--bare", f"--initial-branch={branch}")
        self._git(bare, "config", "http.receivepack", "false")
        if files is not None:
            self.commit(name, files, branch)
        return f"{self.url}/{name}.git"

    def commit(self, name: str, files: dict[str, str], branch: str = "main") -> None:
        """Add a commit of nothing but these files to a branch of a repository."""
        work = self.folder.parent / f"work-{time.monotonic_ns()}"
        work.mkdir()
        self._git(work, "init", "--quiet", f"--initial-branch={branch}")
        for path, text in files.items():
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_text(text)
        self._git(work, "add", "--all", "--force")
        self._git(work, "commit", "--quiet", "-m", "first")
        self._git(work, "push", "--quiet", str(self.folder / f"{name}.git"), branch)
        shutil.rmtree(work)

    def _git(self, folder: Path, *arguments: str) -> None:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), **AUTHOR}
        subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True)


@contextmanager
def serve_git(folder: Path) -> Iterator[GitServer]:
    """Serve repositories on a free port while inside."""
    served = GitServer(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(served))
    server.daemon_threads = True
    served.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()


def _handler(served: GitServer) -> type[BaseHTTPRequestHandler]:
    expected = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            served.requests.append(self.path)
            time.sleep(served.delay)
            private = self.path.startswith("/private/")
            if served.failures:
                self._refuse(served.failures.pop())
            elif private and self.headers.get("Authorization") != f"Basic {expected}":
                self._refuse(401)
            else:
                self._run_backend()

        def _refuse(self, status: int) -> None:
            self.send_response(status)
            if status == 401:
                self.send_header("WWW-Authenticate", 'Basic realm="tests"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _run_backend(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            environment = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(served.folder),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "safe.directory",
                "GIT_CONFIG_VALUE_0": "*",
                "REQUEST_METHOD": self.command,
                "PATH_INFO": parts.path,
                "QUERY_STRING": parts.query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }
            done = subprocess.run(
                ["git", "http-backend"],
                input=body,
                env=environment,
                capture_output=True,
                check=True,
            )
            head, _, rest = done.stdout.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().splitlines())
            self.send_response(int(fields.pop("Status", "200").split()[0]))
            for name, value in fields.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(rest)))
            self.end_headers()
            self.wfile.write(rest)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
