"""The samples in Inspect, which is in an environment of its own."""

import asyncio
import json
import os
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from bench.inspect_calls import count_calls, count_repeats, wait_for_half
from tests.exports.validators_environment import VALIDATORS

TASK = Path(__file__).with_name("inspect_task.py")


@dataclass(frozen=True)
class InspectSide:
    folder: Path
    at_a_time: int

    async def measured(self, samples: int) -> dict[str, float]:
        place = self._place()
        process = await self._start(place, "measure", place / "logs", samples)
        times = await _ended(process)
        assert (times["scored"], times["right"]) == (samples, True), times
        assert len(count_calls(place / "calls")) == samples
        return {
            "time_s": times["time"],
            "cpu_ms_a_call": 1000 * times["cpu"] / samples,
            "written_kb_a_call": times["written"] / 1000 / samples,
        }

    async def killed(self, samples: int) -> dict[str, float]:
        """Killed when half of the calls are made; then `eval-retry`."""
        place = self._place()
        process = await self._start(place, "run", place / "logs", samples)
        await wait_for_half(place / "calls", samples)
        process.kill()
        await process.wait()
        made, at = len(count_calls(place / "calls")), time.perf_counter()
        [log] = (place / "logs").glob("*.eval")
        times = await _ended(await self._start(place, "retry", log))
        took = time.perf_counter() - at
        assert (times["scored"], times["right"]) == (samples, True), times
        return {"calls_before": made, **count_repeats(place / "calls"), "then_time_s": took}

    def _place(self) -> Path:
        place = self.folder / uuid.uuid4().hex
        place.mkdir(parents=True)
        return place

    async def _start(self, place: Path, *args: object) -> asyncio.subprocess.Process:
        own = {"PATH": os.environ["PATH"], "HOME": str(place), "CALLS": str(place / "calls")}
        command = [VALIDATORS.python, "-I", TASK, *args, self.at_a_time]
        with (place / "told").open("ab") as output_file:
            return await asyncio.create_subprocess_exec(
                *map(str, command),
                cwd=place,
                env=own,
                stdout=asyncio.subprocess.PIPE,
                stderr=output_file,
            )


async def _ended(process: asyncio.subprocess.Process) -> dict[str, float]:
    output, _ = await process.communicate()
    assert process.returncode == 0, "Inspect failed: see what it wrote to its standard error"
    times: dict[str, float] = json.loads(output.decode().splitlines()[-1])
    return times
