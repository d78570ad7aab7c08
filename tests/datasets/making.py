"""Datasets in files, a row in each line."""

import json
from pathlib import Path
from typing import Any

from perdure.datasets.dataset import read_dataset
from perdure.evaluation.sample import Sample
from perdure.evaluation.spec import BatchSpec, parse_batch

ROWS = [
    {"id": f"q{number}", "input": f"{number} + 1?", "target": number + 1} for number in range(5)
]


def write_jsonl(path: Path, *rows: Any) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def batch(dataset: Path | str, fields: dict[str, Any] | None = None, **more: Any) -> BatchSpec:
    key = "function" if isinstance(dataset, str) else "path"
    table = {key: str(dataset), "fields": fields or {}}
    return parse_batch({"name": "b", "model": "m", "dataset": table, **more})


def samples(dataset: Path | str, fields: dict[str, Any] | None = None, **more: Any) -> list[Sample]:
    with read_dataset(batch(dataset, fields, **more)) as reader:
        return list(reader)


def ids(dataset: Path | str, **more: Any) -> list[str]:
    return [sample.id for sample in samples(dataset, **more)]
