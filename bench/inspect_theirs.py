"""The samples in Inspect, which is in an environment of its own."""

import asyncio
import json
import os
import subprocess
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from bench.inspect_calls import CallFiles, Workload, count_calls, wait_for_half
from tests.exports.validators_environment import VALIDATORS

TASK = Path(__file__).with_name("inspect_task.py")

CACHE = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
"""The folder in which Inspect keeps the programs that it has downloaded."""


def missing_checkpoints() -> str | None:
    """Return why Inspect can make no checkpoints here; None if it can."""
    result = subprocess.run(
        [VALIDATORS.python, "-I", TASK, "restic"],
        env={"PATH": os.environ["PATH"], "XDG_CACHE_HOME": CACHE},
        capture_output=True,
        text=True,
    )
    return result.stderr.strip().splitlines()[-1] if result.returncode else None


@dataclass(frozen=True)
class InspectSide:
    """`checkpoints` says that each sample is saved before each call of the model."""

    folder: Path
    at_a_time: int
    checkpoints: bool = False

    async def measured(self, work: Workload) -> dict[str, float]:
        files = self._files()
        process = await self._start(files, "measure", files.folder / "logs", work)
        times = await _ended(process, work)
        files.check(work)
        return {
            "time_s": times["time"],
            "cpu_ms_a_call": 1000 * times["cpu"] / work.model_calls,
            "written_kb_a_call": times["written"] / 1000 / work.model_calls,
        }

    async def killed(self, work: Workload) -> dict[str, float]:
        """Killed when half of the calls are made; then `eval-retry`."""
        files = self._files()
        process = await self._start(files, "run", files.folder / "logs", work)
        await wait_for_half(files.model, work)
        process.kill()
        await process.wait()
        made, at = count_calls(files.model).total(), time.perf_counter()
        [log] = (files.folder / "logs").glob("*.eval")
        await _ended(await self._start(files, "retry", log, work), work)
        took = time.perf_counter() - at
        return {"calls_before": made, **files.compare(work), "then_time_s": took}

    def _files(self) -> CallFiles:
        folder = self.folder / uuid.uuid4().hex
        folder.mkdir(parents=True)
        return CallFiles(folder)

    async def _start(
        self, files: CallFiles, way: str, place: Path, work: Workload
    ) -> asyncio.subprocess.Process:
        own = {"PATH": os.environ["PATH"], "HOME": str(files.folder), "XDG_CACHE_HOME": CACHE}
        command = [VALIDATORS.python, "-I", TASK, way, place, "--at-a-time", self.at_a_time]
        command += ["--samples", work.samples, "--tool-calls", work.tool_calls]
        command += ["--checkpoints"] if self.checkpoints else []
        with (files.folder / "errors").open("ab") as output_file:
            return await asyncio.create_subprocess_exec(
                *map(str, command),
                cwd=files.folder,
                env=own | files.environment,
                stdout=asyncio.subprocess.PIPE,
                stderr=output_file,
            )


async def _ended(process: asyncio.subprocess.Process, work: Workload) -> dict[str, float]:
    output, _ = await process.communicate()
    assert process.returncode == 0, "Inspect failed: see what it wrote to its standard error"
    times: dict[str, float] = json.loads(output.decode().splitlines()[-1])
    assert (times["scored"], times["right"]) == (work.samples, True), times
    return times
