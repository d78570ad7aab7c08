"""Worker processes that tests may kill."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]


class WorkerProcess:
    """A worker as an operator would run it, its output in a file."""

    def __init__(
        self, environment: Mapping[str, str], log: Path, arguments: Sequence[str] = ()
    ) -> None:
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "perdure.worker", *arguments],
                cwd=ROOT,
                env={**os.environ, "PERDURE_LOG_FORMAT": "text", **environment},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def kill(self) -> None:
        """End the process at once, as a crash does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait()


@contextlib.contextmanager
def worker_process(
    environment: Mapping[str, str], log: Path, arguments: Sequence[str] = ()
) -> Iterator[WorkerProcess]:
    worker = WorkerProcess(environment, log, arguments)
    try:
        yield worker
    finally:
        if worker.process.poll() is None:
            worker.thaw()
            worker.kill()
