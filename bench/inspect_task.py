"""Scripted samples in Inspect: runs in the environment that has it.

`run LOGS COUNT AT_A_TIME`, `measure LOGS COUNT AT_A_TIME` after a few samples that load what is
loaded once, or `retry LOG AT_A_TIME`; says what it took as a line of JSON. CALLS names the file to
which each call of the model adds a line, with the sample it is for.
"""

import json
import os
import resource
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

from inspect_ai import Task, eval, eval_retry, task  # type: ignore[import-not-found]
from inspect_ai.dataset import Sample  # type: ignore[import-not-found]
from inspect_ai.model import ModelAPI, ModelOutput, ModelUsage, modelapi  # type: ignore[import-not-found]
from inspect_ai.model._providers.mockllm import MockLLM  # type: ignore[import-not-found]
from inspect_ai.scorer import includes  # type: ignore[import-not-found]

ANSWER = "The sum is 7."

WARM = 8


@modelapi(name="counted")  # type: ignore[untyped-decorator]
def counted() -> type[ModelAPI]:
    def answer(messages: list[Any], *_: Any) -> Any:
        os.write(opened(os.environ["CALLS"]), messages[-1].text.partition(":")[0].encode() + b"\n")
        output = ModelOutput.from_content(model="mockllm", content=ANSWER)
        output.usage = ModelUsage(input_tokens=10, output_tokens=6, total_tokens=16)
        return output  # without a usage it would count tokens, and ask another host how

    class Counted(MockLLM):  # type: ignore[misc]
        def __init__(self, model_name: str, *args: Any, **named: Any) -> None:
            super().__init__(model_name, *args, custom_outputs=answer, **named)

    return Counted


@cache
def opened(file: str) -> int:
    return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)


@task  # type: ignore[untyped-decorator]
def sums(count: int) -> Task:
    samples = [
        Sample(id=f"s{nth}", input=f"s{nth}: What is 3 + 4?", target="7") for nth in range(count)
    ]
    return Task(dataset=samples, scorer=includes())


def spent() -> dict[str, float]:
    """Seconds, and bytes handed over to be written; source: proc(5), `io`."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    io = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return {
        "time": time.perf_counter(),
        "cpu": usage.ru_utime + usage.ru_stime,
        "written": int(io["wchar"]),
    }


def run(place: str, count: int, at_a_time: int) -> Any:
    [log] = eval(sums(count=count), model="counted/model", log_dir=place, **options(at_a_time))
    return log


def options(at_a_time: int) -> dict[str, Any]:
    return {"display": "none", "max_samples": at_a_time, "max_connections": at_a_time}


def main() -> None:
    way, place, *args = sys.argv[1:]
    at_a_time = int(args[-1])
    if way == "measure":
        calls, os.environ["CALLS"] = os.environ["CALLS"], os.devnull
        run(f"{place}-before", WARM, at_a_time)
        os.environ["CALLS"] = calls
    before = spent()
    if way == "retry":
        [log] = eval_retry(place, log_dir=str(Path(place).parent), **options(at_a_time))
    else:
        log = run(place, int(args[0]), at_a_time)
    after = spent()
    if log.status != "success":
        sys.exit(f"Inspect's log is {log.status}: {log.error and log.error.message}")
    right = log.results.scores[0].metrics["accuracy"].value == 1.0
    took = {name: after[name] - before[name] for name in after}
    print(json.dumps({**took, "scored": len(log.samples), "right": right}), flush=True)


if __name__ == "__main__":
    main()
