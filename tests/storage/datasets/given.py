"""Datasets in Python."""

from collections.abc import Iterator
from typing import Any

from evaluation.sample import Sample, sample_of

ROWS = [{"input": "a"}, {"input": "b"}]
SAMPLES = (sample_of({"id": "a", "input": "a", "files": {"here": {"source": "making.py"}}}),)
TEXT = "no rows"
MIXED: list[Any] = [{"input": "a"}, 5]
SPEC = {"name": "b", "dataset": "tests.storage.datasets.given:rows", "model": "m"}


def rows() -> Iterator[dict[str, str] | Sample]:
    yield {"id": "1", "input": "one"}
    yield sample_of({"id": "2", "input": "two"})


def breaks() -> Iterator[dict[str, str]]:
    yield {"input": "one"}
    raise OSError("the network is gone")
