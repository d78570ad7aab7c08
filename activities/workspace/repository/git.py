"""Running git in the sandbox of a workspace's commands, with nothing of the machine's settings."""

import asyncio
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from perdure.activities.workspace.repository.errors import CloneFailed
from perdure.sandbox.sandbox import Access, Launch, Sandbox, SandboxUnusable
from perdure.tools.terminal import inherited_environment

PASSED_VARIABLES = (
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY"),
    *("ALL_PROXY", "NO_PROXY", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"),
)

OWN_VARIABLES = {
    "LC_ALL": "C",  # its sentences are read
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ALLOW_PROTOCOL": "https:http:git",
    "GIT_LFS_SKIP_SMUDGE": "1",
}

SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "credential.helper": "",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
    "safe.directory": "*",
}
"""Settings of every command: nothing that a repository has is run, and a server that sends less
than a kilobyte a second for a minute is given up."""

TOKEN_USER = "x-access-token"
"""The user to whom a token belongs: servers look at the token alone."""

MAX_OUTPUT_BYTES = 16 * 1024


@dataclass(frozen=True)
class Online:
    """The network for a command that talks to the server of `url`, and the token for it."""

    url: str
    token: str | None = None

    def __repr__(self) -> str:
        return f"Online({self.url!r})"


async def run_git(
    folder: Path,
    sandbox: Sandbox,
    *arguments: str,
    online: Online | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> tuple[int, str]:
    """Run git in a folder; return its exit code, and its output or the end of a long one.

    `report` is called with each line of it. All processes have ended when this returns or is
    cancelled. Raises CloneFailed if git cannot be started, and OSError.
    """
    with _open_token(online) as token:
        launch = await asyncio.to_thread(_launch, folder, sandbox, arguments, online, token)
        with launch.cleanup:
            # A task: who is cancelled while git starts has to end it all the same.
            starting = asyncio.create_task(_start(launch, folder))
            try:
                process = await asyncio.shield(starting)
                output = await _read_output(process, report)
                return await process.wait(), output
            finally:
                process = await starting
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()


def _launch(
    folder: Path,
    sandbox: Sandbox,
    arguments: tuple[str, ...],
    online: Online | None,
    token: int | None,
) -> Launch:
    program = shutil.which("git")
    if program is None:
        raise CloneFailed("no_git", "The worker has no git: its operator installs it.")
    descriptors = () if token is None else (token,)
    settings = SETTINGS | ({} if online is None or token is None else _credential(online, token))
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    access = Access(folder, network=online is not None, pass_fds=descriptors)
    passed = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
    environment = {**inherited_environment(), **passed, **OWN_VARIABLES}
    try:
        sandbox.prepare(folder)
        return sandbox.launch([program, *options, *arguments], access, environment)
    except SandboxUnusable as error:
        raise CloneFailed("sandbox", f"The repository could not be cloned: {error}") from error


def _credential(online: Online, token: int) -> dict[str, str]:
    """Return the setting by which git reads the token: for the server of the URL, and no other."""
    parts = urlsplit(online.url)
    helper = f'!f() {{ test "$1" = get && cat /dev/fd/{token}; }}; f'
    return {f"credential.{parts.scheme}://{parts.netloc}.helper": helper}


@contextmanager
def _open_token(online: Online | None) -> Iterator[int | None]:
    """Yield a file in memory that has the token as git reads it; None without a token.

    So the token is in no argument, in no variable and on no disk. Raises CloneFailed.
    """
    if online is None or online.token is None:
        yield None
        return
    if not online.token.isprintable():
        raise CloneFailed("token_refused", "The token of the repository is not one line of text.")
    descriptor = os.memfd_create("token", 0)
    try:
        os.write(descriptor, f"username={TOKEN_USER}\npassword={online.token}\n".encode())
        os.fchmod(descriptor, 0o444)  # in a sandbox, git is another user
        yield descriptor
    finally:
        os.close(descriptor)


async def _start(launch: Launch, folder: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *launch.argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=dict(launch.environment),
        pass_fds=launch.pass_fds,
        cwd=folder,
        start_new_session=True,
    )


async def _read_output(process: asyncio.subprocess.Process, report: Callable[[str], None]) -> str:
    """Read all that git says, and report its last line whenever there is more."""
    assert process.stdout is not None
    output = b""
    while piece := await process.stdout.read(4096):
        output = (output + piece)[-MAX_OUTPUT_BYTES:]
        if lines := _decode(output).strip().splitlines():
            report(lines[-1])
    return _decode(output)


def _decode(output: bytes) -> str:
    return output.decode(errors="replace").replace("\r", "\n")
