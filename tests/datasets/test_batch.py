"""Reading a batch from TOML, from Python, or by reference."""

from pathlib import Path

import pytest

from perdure.datasets.batch import read_batch
from perdure.datasets.dataset import read_dataset
from perdure.evaluation.spec import InvalidBatch
from tests.datasets.making import ROWS, write_jsonl

TABLE = '{"name": "b", "dataset": "d.jsonl", "model": "m"}'


def test_a_dataset_path_is_relative_to_the_batch_file(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "d.jsonl", *ROWS)
    (tmp_path / "b.toml").write_text('name = "b"\ndataset = "d.jsonl"\nmodel = "m"\n')
    (tmp_path / "b.py").write_text(f"batch = {TABLE}\n")
    (tmp_path / "f.py").write_text(f"def batch():\n    return {TABLE}\n")
    batches = [read_batch(str(tmp_path / name)) for name in ("b.toml", "b.py", "f.py")]
    assert batches[0] == batches[1] == batches[2]
    with read_dataset(batches[0]) as dataset:
        assert len(dataset) == len(ROWS)


def test_an_absolute_dataset_path_is_unchanged(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text('name = "b"\ndataset = "/x/d.jsonl"\nmodel = "m"\n')
    assert read_batch(str(tmp_path / "b.toml")).dataset.path == "/x/d.jsonl"


def test_a_batch_is_imported_from_a_module() -> None:
    spec = read_batch("tests.datasets.given:SPEC")
    assert spec.dataset.function == "tests.datasets.given:rows"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("b.toml", "name", "b.toml: It is no TOML"),
        ("b.toml", 'name = "b"', "b.toml: The batch cannot be run: the key 'dataset' is missing"),
        ("b.toml", b"\xff", "b.toml: 'utf-8' codec can't decode"),
        ("b.py", "batch = 5", "b.py: It gives a int, and it must be a BatchSpec"),
        ("b.py", "x = 5", "b.py: It has no `batch`"),
        ("b.py", "x = {}['a']", "b.py: It raised KeyError: 'a'"),
        ("b.py", "batch = (", "b.py: It raised SyntaxError"),
        ("b.py", "raise SystemExit(1)", "b.py: It raised SystemExit: 1"),
        ("b.py", "def batch(): raise ValueError('x')", "It raised ValueError: x"),
    ],
)
def test_an_invalid_batch_is_explained(
    tmp_path: Path, name: str, content: str | bytes, sentence: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(InvalidBatch) as refused:
        read_batch(str(path))
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("none.toml", "none.toml cannot be read (No such file or directory)"),
        ("none.py", "none.py cannot be read (No such file or directory)"),
        ("sums", "'sums' is no batch: name a .toml or .py file, or module:attribute"),
        ("no.such:batch", "'no.such:batch': module 'no.such' cannot be found"),
        ("tests.datasets.given:TEXT", "It gives a str, and it must be a BatchSpec"),
    ],
)
def test_a_source_without_a_batch_is_explained(source: str, sentence: str) -> None:
    with pytest.raises(InvalidBatch) as refused:
        read_batch(source)
    assert sentence in str(refused.value)
