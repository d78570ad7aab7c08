"""The command `perdure batch run`, which is killed and started again."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RESTART_DELAY = 0.5
"""Seconds before a command that could not reach somebody is started again."""

RESULT = ("finished", "stopped")


@dataclass
class BatchCommand:
    """`final` is what the command said at the end, `code` how it exited then.

    `gave_up` counts, by what they said, those that ended before that without being killed.
    """

    file: Path
    env: Mapping[str, str]
    log: Path
    starts: int = 0
    kills: int = 0
    final_output: dict[str, Any] | None = None
    exit_code: int | None = None
    failed_starts: Counter[str] = field(default_factory=Counter)
    _process: asyncio.subprocess.Process | None = None

    async def run(self) -> None:
        """Until the command has come to the batch's end."""
        while self.final_output is None:
            await self._run_once()

    def kill(self) -> None:
        """SIGKILL, whatever it is at."""
        process = self._process
        if process is not None and process.returncode is None:
            self.kills += 1
            process.send_signal(signal.SIGKILL)

    def end(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def _run_once(self) -> None:
        self.starts += 1
        with self.log.open("ab") as notes:
            process = await asyncio.create_subprocess_exec(
                *(
                    sys.executable,
                    "-m",
                    "perdure.cli.main",
                    "batch",
                    "run",
                    str(self.file),
                    "-o",
                    "json",
                ),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=notes,
                env=self.env,
            )
        self._process = process
        try:
            out, _ = await process.communicate()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL) if process.returncode is None else None
        self._read_result(process.returncode or 0, out)

    def _read_result(self, code: int, out: bytes) -> None:
        if code == -signal.SIGKILL:
            return
        try:
            output = json.loads(out)
        except ValueError:
            output = {}
        if output.get("status") in RESULT:
            self.final_output, self.exit_code = output, code
        else:
            self.failed_starts[str(output.get("error") or out[-200:])] += 1
