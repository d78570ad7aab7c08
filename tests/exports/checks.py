"""Checks beyond the validators of others: repeated ids, missing results, wrong sums."""

import io
import json
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from html import unescape
from typing import Any

from perdure.events.entry import Entry
from perdure.exports.format import ExportMetadata, Format


def export_files(made: Format, about: ExportMetadata, entries: Iterable[Entry]) -> dict[str, bytes]:
    """Return the files by their paths; a single file has an empty one."""
    files: dict[str, bytes] = {}
    for path, body in made.parts(about, entries):
        files[path] = files.get(path, b"") + body
    return files


def document(made: Format, about: ExportMetadata, entries: Iterable[Entry]) -> Any:
    """Return the one JSON document."""
    [body] = export_files(made, about, entries).values()
    return json.loads(body)


def readable_text(files: dict[str, bytes]) -> str:
    """Return all text in an export, unescaped."""
    return "\n".join(text for body in files.values() for text in _words(body))


def _words(body: bytes) -> Iterator[str]:
    if body.startswith(b"PK"):
        archive = zipfile.ZipFile(io.BytesIO(body))
        for name in archive.namelist():
            yield from _words(archive.read(name))
    elif body.startswith(b"<"):
        yield unescape(body.decode())
    else:
        try:
            yield from strings_in(json.loads(body))
        except ValueError:
            for line in body.splitlines():
                yield from strings_in(json.loads(line))


def strings_in(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from strings_in(item)
        case list():
            for item in value:
                yield from strings_in(item)


def message_faults(messages: list[dict[str, Any]], ends: bool = False) -> list[str]:
    """List the faults of messages; if the example `ends`, its last calls need no results."""
    ids = [call["id"] for item in messages for call in item.get("tool_calls") or ()]
    faults = [f"{item} is called {count} times" for item, count in _repeated(ids)]
    due: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            answers = message["tool_call_id"]
            if not due or answers != due.pop(0):
                faults.append(f"{answers} is not the next call to be answered")
        elif due:
            faults.append(f"a message of {message['role']} stands before the results of {due}")
            due = []
        due = due or [call["id"] for call in message.get("tool_calls") or ()]
        faults += [f"{text} is no object" for text in _arguments(message) if not _is_object(text)]
    return faults + ([f"{due} have no results"] if due and not ends else [])


def _arguments(message: dict[str, Any]) -> list[str]:
    return [call["function"]["arguments"] for call in message.get("tool_calls") or ()]


def _is_object(text: str) -> bool:
    return isinstance(json.loads(text), dict)


def _repeated(ids: Iterable[str]) -> list[tuple[str, int]]:
    return [(item, count) for item, count in Counter(ids).items() if count > 1]


SUMS = {
    "total_prompt_tokens": "prompt_tokens",
    "total_completion_tokens": "completion_tokens",
    "total_cached_tokens": "cached_tokens",
    "total_cost_usd": "cost_usd",
}


def trajectory_faults(trajectory: dict[str, Any]) -> list[str]:
    """List the faults of an ATIF trajectory."""
    steps = trajectory["steps"]
    numbers = [step["step_id"] for step in steps]
    faults = [] if numbers == list(range(1, len(steps) + 1)) else ["steps are not numbered"]
    calls = [call["tool_call_id"] for step in steps for call in step.get("tool_calls", ())]
    faults += [f"{item} is called {count} times" for item, count in _repeated(calls)]
    for step in steps:
        call_ids = [call["tool_call_id"] for call in step.get("tool_calls", ())]
        results = step.get("observation", {"results": []})["results"]
        if [result["source_call_id"] for result in results] != call_ids:
            faults.append(f"the results of step {step['step_id']} are not those of its calls")
    final = trajectory["final_metrics"]
    for total, part in SUMS.items():
        if final[total] != sum(step.get("metrics", {}).get(part, 0) for step in steps):
            faults.append(f"{total} is not the sum of the steps")
    beside = sum(item.get("cost", 0) for item in final["extra"]["beside"].values())
    if final["extra"]["cost_usd_with_all_beside"] != final["total_cost_usd"] + beside:
        faults.append("the steps and what is beside them are not all that was spent")
    return faults + ([] if final["total_steps"] == len(steps) else ["total_steps is wrong"])


def sample_faults(header: dict[str, Any], sample: dict[str, Any]) -> list[str]:
    """List the faults of an Inspect log of one sample."""
    calls = [call["id"] for message in sample["messages"] for call in message.get("tool_calls", ())]
    answers = [
        message["tool_call_id"] for message in sample["messages"] if message["role"] == "tool"
    ]
    faults = [f"{item} is called {count} times" for item, count in _repeated(calls)]
    if calls != answers:
        faults.append("the results are not those of the calls, in their order")
    if header["stats"]["model_usage"] != sample["model_usage"]:
        faults.append("the usage of the log is not that of its sample")
    return faults
