"""Counts of calls per sample, from the files that the model and the tool write."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Workload:
    """So many samples, for each of which the model calls a tool so often before it answers."""

    samples: int
    tool_calls: int

    @property
    def model_calls(self) -> int:
        return self.samples * (self.tool_calls + 1)


@dataclass(frozen=True)
class CallFiles:
    """The files of a run: a line `SAMPLE/NUMBER` for each call of the model and of the tool."""

    folder: Path

    @property
    def model(self) -> Path:
        return self.folder / "calls"

    @property
    def tool(self) -> Path:
        return self.folder / "tool-calls"

    @property
    def environment(self) -> dict[str, str]:
        return {"CALLS": str(self.model), "TOOL_CALLS": str(self.tool)}

    def check(self, work: Workload, prefix: str = "") -> None:
        """Check that every call was made once."""
        calls, tool_calls = count_calls(self.model, prefix), count_calls(self.tool, prefix)
        assert calls.total() == len(calls) == work.model_calls, calls.most_common(3)
        assert tool_calls.total() == len(tool_calls) == work.samples * work.tool_calls

    def compare(self, work: Workload, prefix: str = "") -> dict[str, float]:
        """Count the calls that were made more than once, and those that never were."""
        calls, tool_calls = count_calls(self.model, prefix), count_calls(self.tool, prefix)
        return {
            "calls_again": count_repeats(calls),
            "samples_again": len({call.partition("/")[0] for call in calls if calls[call] > 1}),
            "tool_calls_again": count_repeats(tool_calls),
            "tool_calls_missing": work.samples * work.tool_calls - len(tool_calls),
        }


def count_calls(file: Path, prefix: str = "") -> Counter[str]:
    """Count how often each call was made, of the samples whose names begin so."""
    lines = file.read_text().split() if file.exists() else ()
    return Counter(line for line in lines if line.startswith(prefix))


def count_repeats(calls: Counter[str]) -> int:
    return calls.total() - len(calls)


async def wait_for_half(file: Path, work: Workload, prefix: str = "") -> None:
    """Wait until half of the model's calls have been made."""
    async with asyncio.timeout(3600):
        while len(count_calls(file, prefix)) < work.model_calls // 2:
            await asyncio.sleep(0.002)
