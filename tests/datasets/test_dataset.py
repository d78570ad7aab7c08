"""Reading a dataset: every row is checked, few samples are in memory."""

import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from perdure.datasets.dataset import MAX_SOURCE_BYTES, read_dataset
from perdure.datasets.rows import BadDataset
from perdure.evaluation.sample import EncodedFile
from tests.datasets.making import ROWS, batch, ids, samples, write_jsonl


def test_rows_come_in_their_own_or_the_seeds_order(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", *ROWS)
    assert ids(path) == ["q0", "q1", "q2", "q3", "q4"]
    shuffled = ids(path, shuffle=True)
    assert sorted(shuffled) == ids(path)
    assert shuffled == ids(path, shuffle=True)
    assert len({tuple(ids(path, shuffle=True, seed=seed)) for seed in range(5)}) > 1


def test_a_part_is_selected_by_ids_and_limit(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", *ROWS)
    assert ids(path, limit=2) == ["q0", "q1"]
    assert ids(path, limit=2, shuffle=True) == ids(path, shuffle=True)[:2]
    assert ids(path, limit=99) == ids(path)
    assert ids(path, ids=["q3", "q1"]) == ["q1", "q3"]
    assert ids(path, ids=["q3", "q1"], limit=1) == ["q1"]


def test_samples_are_read_repeatedly_in_any_order(tmp_path: Path) -> None:
    with read_dataset(batch(write_jsonl(tmp_path / "d.jsonl", *ROWS))) as dataset:
        assert len(dataset) == 5
        assert [dataset[at].id for at in (4, 0, 4, -1)] == ["q4", "q0", "q4", "q4"]
        assert [item.id for item in dataset] == [item.id for item in dataset]
        with pytest.raises(IndexError):
            dataset[5]


def test_a_missing_id_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match=r"d\.jsonl has no sample 'q9'"):
        ids(write_jsonl(tmp_path / "d.jsonl", *ROWS), ids=["q1", "q9"])


def test_unselected_rows_are_checked_too(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match=r"d\.jsonl:6: there is no column 'input'"):
        ids(write_jsonl(tmp_path / "d.jsonl", *ROWS, {"id": "q5"}), limit=1)


def test_a_duplicate_id_is_named_with_both_lines(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", *ROWS, {"id": "q1", "input": "again"})
    with pytest.raises(BadDataset, match=r"d\.jsonl:6: the id 'q1' is that of line 2 too"):
        ids(path)


def test_generated_ids_do_not_depend_on_earlier_rows(tmp_path: Path) -> None:
    rows = [{"input": "a"}, {"input": "b"}]
    first = ids(write_jsonl(tmp_path / "d.jsonl", *rows))
    assert ids(write_jsonl(tmp_path / "d.jsonl", {"input": "new"}, *rows))[1:] == first


def test_equal_rows_without_ids_are_numbered(tmp_path: Path) -> None:
    name, second, third = ids(write_jsonl(tmp_path / "d.jsonl", *[{"input": "a"}] * 3))
    assert (second, third) == (f"{name}-2", f"{name}-3")


def test_columns_are_mapped_to_fields(tmp_path: Path) -> None:
    row = {"task": 7, "prompt": "a", "gold": ["b"], "level": 1, "kind": "x", "id": "not this"}
    path = write_jsonl(tmp_path / "d.jsonl", row)
    fields = {"id": "task", "input": "prompt", "target": "gold", "metadata": ["level", "kind"]}
    (sample,) = samples(path, fields)
    assert (sample.id, sample.question, sample.target) == ("7", "a", ("b",))
    assert sample.metadata == {"level": 1, "kind": "x"}


@pytest.mark.parametrize("field", ["id", "input", "target", "files", "setup", "metadata"])
def test_a_missing_mapped_column_is_refused(tmp_path: Path, field: str) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", {"input": "a"})
    with pytest.raises(BadDataset, match=rf"1: there is no column 'x' for {field}; the row has"):
        samples(path, {field: "x"})
    with pytest.raises(BadDataset, match="there is no column 'x' for metadata"):
        samples(path, {"metadata": ["input", "x"]})


def test_files_beside_the_dataset_are_read(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "text").write_text("é")
    (tmp_path / "in" / "bytes").write_bytes(b"\xff")
    files = {"a": {"source": "in/text"}, "b": {"source": "in/bytes"}, "c": "inline"}
    (sample,) = samples(write_jsonl(tmp_path / "d.jsonl", {"input": "a", "files": files}))
    assert sample.files == {"a": "é", "b": EncodedFile(base64="/w=="), "c": "inline"}


def test_unreadable_files_are_named_before_the_batch_starts(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    home = tmp_path / "home"
    home.mkdir()
    (home / "link").symlink_to(tmp_path / "secret")
    with (home / "large").open("wb") as large:
        large.truncate(MAX_SOURCE_BYTES + 1)
    refused = {
        "../secret": "leads out of the dataset's folder",
        "link": "leads out of the dataset's folder",
        str(tmp_path / "secret"): "leads out of the dataset's folder",
        "none": "there is no file 'none' beside the dataset",
        ".": "there is no file '.' beside the dataset",
        "a\0b": "null byte",
        "large": "16,777,217 bytes, and 16,777,216 is the most",
    }
    for source, sentence in refused.items():
        row = {"input": "a", "files": {"a": {"source": source}}}
        with pytest.raises(BadDataset, match=rf"d\.jsonl:1: .*{sentence}"):
            samples(write_jsonl(home / "d.jsonl", row))


def test_a_file_deleted_meanwhile_is_reported_by_the_read(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    row = {"id": "s", "input": "a", "files": {"a": {"source": "f"}}}
    with read_dataset(batch(write_jsonl(tmp_path / "d.jsonl", row))) as dataset:
        (tmp_path / "f").unlink()
        with pytest.raises(BadDataset, match="The sample 's' cannot be made: there is no file 'f'"):
            dataset[0]


def test_samples_are_in_a_file_and_not_in_memory(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", *({"input": "x" * 200_000} for _ in range(100)))
    ids(write_jsonl(tmp_path / "warm.jsonl", *ROWS))
    tracemalloc.start()
    try:
        with read_dataset(batch(path, shuffle=True)) as dataset:
            assert sum(len(item.question) for item in dataset) == 20_000_000
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 4_000_000  # of 20 MB


MEASURED = """
import resource, sys
from pathlib import Path
from tests.datasets.making import batch
from perdure.datasets.dataset import read_dataset

dataset = read_dataset(batch(Path(sys.argv[1]), shuffle=True))
assert dataset[0].question
print(len(dataset), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.longest
def test_a_hundred_thousand_rows_are_not_in_memory(tmp_path: Path) -> None:
    few = write_jsonl(tmp_path / "few.jsonl", *ROWS)
    row = {"input": "x" * 1000, "target": "y"}
    many = write_jsonl(
        tmp_path / "many.jsonl", *({**row, "id": number} for number in range(100_000))
    )
    used = {}
    for path in (few, many):
        command = [sys.executable, "-c", MEASURED, str(path)]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        used[int(output[0])] = int(output[1])
    assert used[100_000] - used[5] < 40_000_000  # of 100 MB
