"""Datasets in Python, for references."""

from collections.abc import Iterator
from typing import Any

from perdure.evaluation.sample import Sample, build_sample

ROWS = [{"input": "a"}, {"input": "b"}]
SAMPLES = (build_sample({"id": "a", "input": "a", "files": {"here": {"source": "making.py"}}}),)
TEXT = "no rows"
MIXED: list[Any] = [{"input": "a"}, 5]
SPEC = {"name": "b", "dataset": "tests.datasets.given:rows", "model": "m"}


def rows() -> Iterator[dict[str, str] | Sample]:
    yield {"id": "1", "input": "one"}
    yield build_sample({"id": "2", "input": "two"})


def breaks() -> Iterator[dict[str, str]]:
    yield {"input": "one"}
    raise OSError("the network is gone")


def numbered(count: int, start: int = 0) -> Iterator[dict[str, str]]:
    for number in range(start, start + count):
        yield {"id": f"{number}", "input": "?"}
