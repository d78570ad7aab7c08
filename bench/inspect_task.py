"""Scripted samples in Inspect: runs in the environment that has it.

`run LOGS`, `measure LOGS` after a few samples that load what is loaded once, or `retry LOG` do the
samples and say what it took as a line of JSON; `restic` says where the program is that checkpoints
need. CALLS and TOOL_CALLS name the files to which each call of the model and of its tool adds a
line: the sample and the number of the call.
"""

import argparse
import asyncio
import json
import os
import resource
import sys
import time
from functools import cache, partial
from pathlib import Path
from typing import Any

from inspect_ai import Task, eval, eval_retry, task  # type: ignore[import-not-found]
from inspect_ai.agent import react  # type: ignore[import-not-found]
from inspect_ai.dataset import Sample  # type: ignore[import-not-found]
from inspect_ai.model import ModelAPI, ModelOutput, ModelUsage, modelapi  # type: ignore[import-not-found]
from inspect_ai.model._providers.mockllm import MockLLM  # type: ignore[import-not-found]
from inspect_ai.scorer import includes  # type: ignore[import-not-found]
from inspect_ai.solver import generate  # type: ignore[import-not-found]
from inspect_ai.tool import Tool, tool  # type: ignore[import-not-found]
from inspect_ai.util import CheckpointConfig, TurnInterval  # type: ignore[import-not-found]
from inspect_ai.util._restic import resolve_restic  # type: ignore[import-not-found]

ANSWER = "The sum is 7."

WARM = 8


@modelapi(name="counted")  # type: ignore[untyped-decorator]
def counted() -> type[ModelAPI]:
    class Counted(MockLLM):  # type: ignore[misc]
        """Its name is how often it calls the tool before it answers."""

        def __init__(self, model_name: str, *args: Any, **named: Any) -> None:
            outputs = partial(answer, int(model_name))
            super().__init__(model_name, *args, custom_outputs=outputs, **named)

    return Counted


def answer(tool_calls: int, messages: list[Any], *_: Any) -> Any:
    sample = next(message.text for message in messages if message.role == "user").partition(":")[0]
    number = sum(message.role == "assistant" for message in messages)
    write_line("CALLS", call := f"{sample}/{number}")
    output = ModelOutput.from_content(model="mockllm", content=ANSWER)
    if number < tool_calls:
        output = ModelOutput.for_tool_call("mockllm", "note", {"line": call})
    output.usage = ModelUsage(input_tokens=10, output_tokens=6, total_tokens=16)
    return output  # without a usage it would count tokens, and ask another host how


@tool  # type: ignore[untyped-decorator]
def note() -> Tool:
    async def execute(line: str) -> str:
        """Note a line.

        Args:
            line: The line to note.
        """
        write_line("TOOL_CALLS", line)
        return "It is noted."

    return execute


def write_line(variable: str, line: str) -> None:
    os.write(opened(os.environ[variable]), f"{line}\n".encode())


@cache
def opened(file: str) -> int:
    return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)


@task  # type: ignore[untyped-decorator]
def sums(count: int, tool_calls: int) -> Task:
    samples = [
        Sample(id=f"s{nth}", input=f"s{nth}: What is 3 + 4?", target="7") for nth in range(count)
    ]
    solver = react(tools=[note()], submit=False) if tool_calls else generate()
    return Task(dataset=samples, solver=solver, scorer=includes())


def spent() -> dict[str, float]:
    """Seconds, and bytes handed over to be written, of ended children too; source: proc(5)."""
    usages = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    io = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return {
        "time": time.perf_counter(),
        "cpu": sum(usage.ru_utime + usage.ru_stime for usage in usages),
        "written": int(io["wchar"]),
    }


def run(options: argparse.Namespace, logs: str, count: int) -> Any:
    work = sums(count=count, tool_calls=options.tool_calls)
    [log] = eval(work, model=f"counted/{options.tool_calls}", log_dir=logs, **eval_options(options))
    return log


def eval_options(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "display": "none",
        "max_samples": options.at_a_time,
        "max_connections": options.at_a_time,
        "checkpoint": CheckpointConfig(trigger=TurnInterval(every=1))
        if options.checkpoints
        else None,
    }


def do_samples(options: argparse.Namespace) -> None:
    if options.way == "measure":
        files = {name: os.environ[name] for name in ("CALLS", "TOOL_CALLS")}
        os.environ.update(dict.fromkeys(files, os.devnull))
        run(options, f"{options.place}-before", WARM)
        os.environ.update(files)
    before = spent()
    if options.way == "retry":
        folder = str(Path(options.place).parent)
        [log] = eval_retry(options.place, log_dir=folder, **eval_options(options))
    else:
        log = run(options, options.place, options.samples)
    after = spent()
    if log.status != "success":
        sys.exit(f"Inspect's log is {log.status}: {log.error and log.error.message}")
    right = log.results.scores[0].metrics["accuracy"].value == 1.0
    took = {name: after[name] - before[name] for name in after}
    print(json.dumps({**took, "scored": len(log.samples), "right": right}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("way", choices=("run", "measure", "retry", "restic"))
    parser.add_argument("place", nargs="?")
    parser.add_argument("--samples", type=int)
    parser.add_argument("--tool-calls", type=int)
    parser.add_argument("--at-a-time", type=int)
    parser.add_argument("--checkpoints", action="store_true")
    options = parser.parse_args()
    if options.way == "restic":
        print(asyncio.run(resolve_restic()))
    else:
        do_samples(options)


if __name__ == "__main__":
    main()
