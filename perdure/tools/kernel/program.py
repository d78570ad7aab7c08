"""Run cells in IPython, one after the other, in one process.

A program of its own (`python -I program.py`), because it runs inside of the sandbox. Frames come
in and markers go out as in `../shell/session.bash`: a cell is read from descriptor 60, its output
goes to the terminal, between a marker that says `begun` and one that says `ended`, with 0 for a
cell without an error and 1 for another. An image goes there too, as markers with its base64.

An interrupt (C-c) raises KeyboardInterrupt in a cell. Between two cells it repeats the marker
`ended`, because the terminal drops what was not read of it yet.
"""

import base64
import binascii
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from traitlets import Type
from traitlets.config import Config

COMMANDS_DESCRIPTOR = 60
TERMINAL = 1

PART_CHARS = 6 * 1024
"""Base64 characters of one marker, which may have 8 KiB."""
IMAGE_TYPES = ("image/png", "image/jpeg")
MAX_IMAGE_BYTES = 3_750_000
"""The largest image that is shown: 5 MB in base64, the limit of providers."""
MAX_IMAGES = 8
"""Images that one cell shows."""


class Channel:
    """The frames that come in, the markers that go out, and the cell between them."""

    def __init__(self) -> None:
        self._unread = b""
        self._last_marker = b""
        self._number = 0
        self._images = 0
        self._secret = self._read_frame()

    def _read_frame(self) -> str:
        """Return the next frame; the end of the frames is the end of this program."""
        while b"\0" not in self._unread:
            if not (chunk := os.read(COMMANDS_DESCRIPTOR, 64 * 1024)):
                raise SystemExit
            self._unread += chunk
        frame, _, self._unread = self._unread.partition(b"\0")
        return frame.decode()

    def read_cell(self) -> tuple[str, dict[str, str]]:
        """Return the code of the next cell, and the variables that it is lent."""
        variables: dict[str, str] = {}
        while (frame := self._read_frame()).startswith(f"{self._secret} lend "):
            variables[frame.rpartition(" ")[2]] = self._read_frame()
        head, _, code = frame.partition("\n")
        self._number, self._images = int(head.rpartition(" ")[2]), 0
        return code, variables

    def begin(self) -> None:
        self._write_marker("begun", os.getpid(), _working_directory())

    def end(self, status: int) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self._write_marker("ended", status, _working_directory())

    def repeat_marker(self, *_: object) -> None:
        _write_whole(self._last_marker)

    def show(self, data: Mapping[str, Any]) -> bool:
        """Show the image among the forms that IPython has of a value; False without one."""
        kind = next((kind for kind in IMAGE_TYPES if data.get(kind)), None)
        if kind is None:
            return False
        body = data[kind] if isinstance(data[kind], bytes) else _decode(data[kind])
        self._images += 1
        if len(body) > MAX_IMAGE_BYTES:
            print(f"[image of {len(body):,} bytes: too large to be shown]")
        elif self._images > MAX_IMAGES:
            print(f"[image {self._images}: a cell shows {MAX_IMAGES} at most]")
        else:
            print(f"[image {self._images}]", flush=True)
            self._write_image(base64.b64encode(body).decode())
        return True

    def _write_image(self, text: str) -> None:
        parts = [text[at : at + PART_CHARS] for at in range(0, len(text), PART_CHARS)]
        for rest, part in zip(reversed(range(len(parts))), parts, strict=True):
            self._write_marker("image", rest, part)

    def _write_marker(self, kind: str, number: int, text: str) -> None:
        marker = f"\x1e{self._secret} {self._number} {kind} {number}\0{text}\0"
        self._last_marker = os.fsencode(marker)
        _write_whole(self._last_marker)


def _write_whole(data: bytes) -> None:
    while data:
        data = data[os.write(TERMINAL, data) :]


def _working_directory() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - this program has no use for pathlib
    except FileNotFoundError:  # removed by a cell
        return "(removed)"


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except binascii.Error:
        return b""


class ImageHook(DisplayHook):
    """The display of a cell's value: an image if it has that form, or else text."""

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        kernel: Any = self.shell
        if not kernel.channel.show(format_dict):
            super().write_format_data(format_dict, md_dict)


class ImagePublisher(DisplayPublisher):
    """The display of what a cell shows by `display`, and of plots."""

    def publish(self, data: Any, *_: Any, **__: Any) -> None:
        if not self.shell.channel.show(data) and (text := data.get("text/plain")):
            print(text)


class Kernel(InteractiveShell):
    """IPython without a screen: commands write to the terminal, and `exit` ends the process."""

    channel: Channel
    displayhook_class = Type(ImageHook)
    display_pub_class = Type(ImagePublisher)
    system = InteractiveShell.system_raw

    def run(self, code: str) -> bool:
        """Run a cell, and return whether it raised no exception."""
        result: ExecutionResult = self.run_cell(code, store_history=True)  # type: ignore[no-untyped-call]
        return bool(result.success)

    def ask_exit(self) -> None:
        sys.stdout.flush()
        os._exit(0)


def make_kernel(channel: Channel, folder: str) -> Kernel:
    """Make the kernel, whose own files are in `folder`."""
    config = Config()
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.ipython_dir = folder
    config.HistoryManager.enabled = False
    kernel: Kernel = Kernel.instance(config=config)
    kernel.channel = channel
    return kernel


@contextmanager
def lent(variables: Mapping[str, str]) -> Iterator[None]:
    """Have variables in the environment for one cell."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def main() -> None:
    # Nobody answers a question: without input, it fails at once.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.set_inheritable(COMMANDS_DESCRIPTOR, False)
    channel = Channel()
    with tempfile.TemporaryDirectory(prefix="kernel-") as folder:
        kernel = make_kernel(channel, folder)
        sys.path.insert(0, "")  # modules in the workspace
        signal.signal(signal.SIGINT, channel.repeat_marker)
        while True:
            code, variables = channel.read_cell()
            channel.end(run_cell(kernel, code, variables))


def run_cell(kernel: Kernel, code: str, variables: Mapping[str, str]) -> int:
    """Run a cell, and return 0 unless it raised an exception."""
    try:
        # Python's own handler: one of ours would be a frame of the traceback.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        kernel.channel.begin()
        with lent(variables):
            return 0 if kernel.run(code) else 1
    except KeyboardInterrupt:
        print("KeyboardInterrupt")
        return 1
    finally:
        signal.signal(signal.SIGINT, kernel.channel.repeat_marker)


if __name__ == "__main__":
    main()
