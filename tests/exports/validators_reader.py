"""Reads exports with the code of others. Runs in the environment that has it.

Takes a folder with files of each format and writes what was read of them: of a trajectory all of
it, as they would write it again; of an example its roles; of an Inspect log what it says. Ends with
the error of whoever refuses one.
"""

import json
import sys
from pathlib import Path
from typing import Any

from atif import Trajectory  # type: ignore[import-not-found]
from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries  # type: ignore[import-not-found]
from inspect_ai.scorer import SampleScore, accuracy, mean_score, stderr  # type: ignore[import-not-found]
from mistral_common.protocol.instruct.request import ChatCompletionRequest  # type: ignore[import-not-found]
from mistral_common.protocol.instruct.validator import ValidationMode, get_validator  # type: ignore[import-not-found]
from mistral_common.tokens.tokenizers.base import TokenizerVersion  # type: ignore[import-not-found]

VERSIONS = (TokenizerVersion.v13, TokenizerVersion.v15)
"""Versions that accept call ids as models write them."""


def atif(path: Path) -> Any:
    return Trajectory.model_validate_json(path.read_text()).to_json_dict()


def openai(path: Path) -> list[str]:
    request = ChatCompletionRequest.from_openai(**json.loads(path.read_text()))
    for version in VERSIONS:
        get_validator(version, ValidationMode.finetuning).validate_request(request)
    return [str(message.role) for message in request.messages]


def inspect(path: Path) -> dict[str, Any]:
    log = read_eval_log(str(path), resolve_attachments=True)
    [summary] = read_eval_log_sample_summaries(str(path))
    [sample] = log.samples
    calls = [event for event in sample.events if event.event == "model"]
    usage = sample.model_usage.values()
    return {
        "status": log.status,
        "roles": [message.role for message in sample.messages],
        "input": [sample.input, summary.input],
        "counted": summary.message_count,
        "kinds": [event.data["kind"] for event in sample.events if event.event == "info"],
        "events": [event.event for event in sample.events],
        "inputs": [[message.text for message in event.input] for event in calls],
        "outputs": [event.output.completion for event in calls],
        "unresolved": "attachment://" in sample.model_dump_json(),
        "cost": sum(item.total_cost for item in usage),
    }


def batch(path: Path) -> dict[str, Any]:
    """Aggregate each scorer with plain values by their own reducer and metrics."""
    log = read_eval_log(str(path))
    summaries = read_eval_log_sample_summaries(str(path))
    scores: dict[str, dict[str, list[Any]]] = {}
    for sample in log.samples:
        for name, score in (sample.scores or {}).items():
            if not isinstance(score.value, dict):
                scores.setdefault(name, {}).setdefault(sample.id, []).append(score)
    return {
        "status": log.status,
        "samples": [[item.id, item.epoch] for item in log.samples],
        "summaries": [[summary.id, summary.epoch] for summary in summaries],
        "expected": log.results.total_samples,
        "completed": log.results.completed_samples,
        "without_error": sum(item.error is None for item in log.samples),
        "retries": sum(len(item.error_retries or ()) for item in log.samples),
        "limits": [item.limit.type for item in log.samples if item.limit],
        "told": [
            [
                item.scorer,
                item.name,
                item.reducer,
                {key: it.value for key, it in item.metrics.items()},
            ]
            for item in log.results.scores
        ],
        "computed": {name: _metrics(by_id) for name, by_id in scores.items()},
    }


def _metrics(by_id: dict[str, list[Any]]) -> dict[str, float]:
    reduce = mean_score()
    reduced = [SampleScore(score=reduce(scores), sample_id=item) for item, scores in by_id.items()]
    return {"mean": accuracy()(reduced), "stderr": stderr()(reduced)}


def reader(path: Path) -> Any:
    return batch if path.stem == "batch" else READERS[path.suffix]


READERS = {".json": atif, ".jsonl": openai, ".eval": inspect}

if __name__ == "__main__":
    folder, taken = Path(sys.argv[1]), Path(sys.argv[2])
    files = sorted(folder.iterdir())
    taken.write_text(json.dumps({file.name: reader(file)(file) for file in files}))
