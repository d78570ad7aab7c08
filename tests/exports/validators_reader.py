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
from mistral_common.protocol.instruct.request import ChatCompletionRequest  # type: ignore[import-not-found]
from mistral_common.protocol.instruct.validator import ValidationMode, get_validator  # type: ignore[import-not-found]
from mistral_common.tokens.tokenizers.base import TokenizerVersion  # type: ignore[import-not-found]

VERSIONS = (TokenizerVersion.v13, TokenizerVersion.v15)
"""Those that take ids of calls as models give them."""


def atif(path: Path) -> Any:
    return Trajectory.model_validate_json(path.read_text()).to_json_dict()


def openai(path: Path) -> list[str]:
    request = ChatCompletionRequest.from_openai(**json.loads(path.read_text()))
    for version in VERSIONS:
        get_validator(version, ValidationMode.finetuning).validate_request(request)
    return [str(message.role) for message in request.messages]


def inspect(path: Path) -> dict[str, Any]:
    log = read_eval_log(str(path))
    [summary] = read_eval_log_sample_summaries(str(path))
    [sample] = log.samples
    usage = sample.model_usage.values()
    return {
        "status": log.status,
        "roles": [message.role for message in sample.messages],
        "input": [sample.input, summary.input],
        "counted": summary.message_count,
        "kinds": [event.data["kind"] for event in sample.events],
        "cost": sum(one.total_cost for one in usage),
    }


READERS = {".json": atif, ".jsonl": openai, ".eval": inspect}

if __name__ == "__main__":
    folder, taken = Path(sys.argv[1]), Path(sys.argv[2])
    files = sorted(folder.iterdir())
    taken.write_text(json.dumps({file.name: READERS[file.suffix](file) for file in files}))
